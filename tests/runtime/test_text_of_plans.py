"""The text of a plan: whatever a file calls its variables, it is identifiers and integers of ours, and runs nothing else."""

import ast
import re
import sys

import pytest
import workloads
from generated.hostile import hostile, text_of_plan
from generated.making import make
from processes import INSTALLED, run_python

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.op.control.ragged_rows import RaggedRows
from oarlock.op.control.recurrent_loop import RaggedSteps
from oarlock.runtime.plan.workspace import GrowingBuffer, Workspace

OURS = {"context_of", "device", "workspace", "before_updates", "for_many", "zip", "range", "len", "reversed", "str"}
OPERATORS = [*ol.registry.standard.operators.values(), *ol.registry.standard.gradient_operators.values()]
FORMS = [found for operator in OPERATORS for found in variants_of(operator).expressions.values()]
PARTS = [node for form in FORMS for expression in form for node in ast.walk(ast.parse(expression.text))]
METHODS = {name for kind in (RaggedRows, RaggedSteps, Workspace, GrowingBuffer) for name in dir(kind) if not name.startswith("_")} | {
    "shape", "total", "counts", "steps", "reverse", "append", "unbind", "copy_", "add_", "item", "split", "clone",
    *(node.attr for node in PARTS if isinstance(node, ast.Attribute)),
}  # fmt: skip
KEYWORDS = {"alone", "out", "packed", "by_row", *(name for operator in OPERATORS for name in operator.attributes)}
KEYWORDS |= {str(node.arg) for node in PARTS if isinstance(node, ast.keyword)}
NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.Delete, ast.For, ast.While, ast.If, ast.IfExp, ast.Return,
    ast.Expr, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Subscript, ast.Slice, ast.Compare,
    ast.UnaryOp, ast.Starred, ast.BinOp, ast.AugAssign, ast.Pass, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def strangers(text):
    """The names and constants in the text of a plan that we did not put there."""
    found = set()
    module = ast.parse(text)
    assert all(isinstance(function, ast.FunctionDef) for function in module.body)
    assert [function.name for function in module.body] in (["plan"], ["plan", "precompute"])
    for node in ast.walk(module):
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None
        if name is not None and name not in OURS and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*_[0-9]+", name):
            found.add(name)
        if isinstance(node, ast.Constant) and not (node.value in (None, ...) or type(node.value) in (int, bool)):
            found.add(repr(node.value))
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            found.add(f".{node.attr}")
        if isinstance(node, ast.keyword) and node.arg not in KEYWORDS:
            found.add(f"{node.arg}=")
        if not isinstance(node, NODES):
            found.add(type(node).__name__)
    return found


@pytest.mark.parametrize("name", [*workloads.TRAINING, *workloads.INFERENCE])
def test_the_plans_of_all_workloads_are_identifiers_and_integers(name):
    workload = workloads.describe(name)
    text = ol.Executor(poison=True).plan(workload.program, [workload.fetch]).text
    assert strangers(text) == set()
    assert text.isascii()


@pytest.mark.parametrize("passes", [(), tuple(ol.Executor().passes)], ids=["as it is", "after all passes"])
def test_the_plans_of_programs_with_hostile_names_are_identifiers_and_integers(passes):
    for number in range(25):
        text = text_of_plan(hostile(make(0, number).program, number), passes)
        assert strangers(text) == set()
        assert text.isascii()
        assert max(map(len, text.splitlines())) < 4000


def test_a_stranger_would_be_found():
    text = "def plan(context_of, device, x_1):\n    y_2 = __import__('os').system(x_1, b=1.5)\n    return lambda: [y_2]\n"
    assert strangers(text) == {"__import__", "'os'", ".system", "b=", "1.5", "Lambda"}


@pytest.mark.parametrize("name", ['x"', "x'", "x\n", "x;y", "x y", "x#", "x\\", "x(", "ü", "\u202e", "", "x" * 257, "..", "{x}"])
def test_names_that_could_end_a_line_or_a_text_are_refused_before_there_is_a_plan(name):
    with ol.Program() as program:
        y = ol.op.tanh(ol.layer.data("x", shape=[2]))
    var = program.main.vars.pop(y.name)
    var.name = name
    program.main.vars[name] = var
    with pytest.raises(ol.VerifyError, match="is not a legal name"):
        ol.Executor().plan(program, [var])


# What happens besides

AUDIT = """
import sys
import numpy
from generated.hostile import hostile, text_of_plan
from generated.making import make
from generated.running import feed_of, scope_of
import oarlock as ol

def work(change):
    for number in range(12):
        case = make(0, number)
        targets = [case.program.main.var(name) for name, _ in case.targets]
        names = [var.name for var in case.program.main.inputs]
        scope = scope_of(case.program, case.arrays)
        held = [(var, scope[var.name]) for var in case.program.persistables()]
        inputs = [(var, case.arrays[var.name]) for var in case.program.main.inputs]
        program = change(case.program, number)
        scope, executor = ol.Scope(), ol.Executor()
        for var, array in held:
            scope.set(var.name, array)
        for _ in range(2):
            executor.run(program, {var.name: array for var, array in inputs}, targets, scope=scope)

work(lambda program, number: program)  # what torch imports when it is first used
seen, watching = {}, False
WATCHED = ("code.__new__", "compile", "ctypes", "exec", "import", "marshal", "open", "os.",
           "pickle", "shutil", "socket", "subprocess", "tempfile")

def hook(event, arguments):
    if watching and event.startswith(WATCHED):
        file = arguments[1] if event == "compile" else arguments[0].co_filename if event == "exec" else None
        plans = isinstance(file, str) and file.startswith("<plan ") and file[6:-1].isdigit() and file.endswith(">")
        seen.setdefault("of plans" if plans else event, str(arguments)[:200])

sys.addaudithook(hook)
watching = True
work(hostile)
watching = False
print(sorted(seen))
"""


def test_nothing_is_imported_compiled_started_or_opened_but_plans(tmp_path):
    lines = f"import sys\nsys.path[:0] = {[path for path in sys.path if path.rstrip('/').endswith('tests')] + [INSTALLED]!r}\n"
    assert run_python(lines + AUDIT, tmp_path) == "['of plans']\n"


def test_the_hook_of_the_test_above_sees_what_it_should(tmp_path):
    lines = f"import sys\nsys.path[:0] = {[path for path in sys.path if path.rstrip('/').endswith('tests')] + [INSTALLED]!r}\n"
    spoiled = lines + AUDIT.replace("work(hostile)", "work(hostile); eval('1'); open('/dev/null').close()")
    assert run_python(spoiled, tmp_path) == "['compile', 'exec', 'of plans', 'open']\n"

"""Stubs for editors and type checkers: they equal the output of tools/stubs.py, and accept valid programs and reject invalid ones."""

import ast
import inspect
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import oarlock as ol

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "oarlock"
STUBS = runpy.run_path(str(ROOT / "tools" / "stubs.py"))


@pytest.mark.parametrize("stub", ["__init__.pyi", "data/__init__.pyi", "ir/attached.pyi", "layer/__init__.pyi", "op/__init__.pyi"])
def test_a_stub_is_what_the_command_writes(stub, golden):
    golden(PACKAGE / stub, STUBS["make_stubs"]()[stub])


def test_every_operator_that_is_called_by_name_has_its_signature_in_the_stub():
    tree = ast.parse((PACKAGE / "op" / "__init__.pyi").read_text(encoding="utf-8"))
    stated: dict[str, list[list[str]]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
            stated.setdefault(node.name, []).append([*names, *([node.args.vararg.arg] if node.args.vararg else [])])
    for operator in STUBS["callable_operators"]():
        assert sorted(stated[operator.type][0]) == sorted(inspect.signature(operator).parameters), operator.type
    functions = [name for name in ol.op.__all__ if STUBS["is_shown_otherwise"](getattr(ol.op, name))]
    assert sorted(stated) == sorted([*functions, *(operator.type for operator in STUBS["callable_operators"]())])
    assert stated["celu"] == [["x", "alpha"]]


def test_public_functions_say_what_they_take_and_give():
    """Their stubs only name them, so editors need the types of the source."""
    untyped = []
    for place, module in (("ol", ol), ("ol.op", ol.op), ("ol.layer", ol.layer), ("ol.layer.initializer", ol.layer.initializer)):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                signature = inspect.signature(value)
                given = [*(each.annotation for each in signature.parameters.values()), signature.return_annotation]
                untyped += [f"{place}.{name}"] if inspect.Parameter.empty in given else []
    assert untyped == []


PROGRAM = """\
import oarlock as ol

x = ol.layer.data("x", shape=[4])
w = ol.layer.create_parameter([4, 4])
rows = ol.layer.data("rows", shape=[], dtype="int64")
y = x + 1.0
y = 2 * -x - x / 3 + x**2
y = x @ w
flags = (x > 0) & ~(x <= 1)
y = x[...]
y = x[1:3, None]
y = x[rows]
y = ol.op.tanh(x, name="squashed")
y = ol.op.softmax(x, -1)
y = ol.op.reshape(x, ("n", 2, 2))
y = ol.op.reshape(x, shape=[-1, 2])
y = ol.op.concat([x, y], 1) + ol.op.concat(x, y)
y = ol.op.maximum(x, 0) + ol.op.where(flags, x, 0.0) + ol.op.clip(x, lower=0.0)
y = ol.op.celu(x, 0.5) + ol.op.threshold(x, 0.1, value=2.0)
y = ol.op.cast(x, "float64") + ol.op.cast(x, dtype=ol.DType.FLOAT64)
y = ol.op.reduce_sum(x, (0, 1), keepdim=True) + ol.op.mean(x, 0)
y = ol.op.broadcast_to(x, [rows], ("n", 4)) + ol.op.broadcast_to(x, shape=(3, 4)) + ol.op.broadcast_to(x, (3, 4))
values, indices = ol.op.top_k(x, 2)
first, *others = ol.op.split(x, 2, axis=1)
y = ol.layer.fc(first, 10, act="relu") + values[0] + others[0].as_step_input()
ol.optimizer.SGD(learning_rate=0.1).minimize(ol.layer.mean(y))
ol.op.tnah(x)  # wrong
ol.layer.fcc(x, 10)  # wrong
ol.optimizer.Adm()  # wrong
ol.laer  # wrong
x.shpe  # wrong
ol.op.tanh(x, nme="squashed")  # wrong
ol.op.softmax(x, "last")  # wrong
ol.op.softmax(x, axes=-1)  # wrong
ol.op.softmax()  # wrong
ol.op.celu(x, "half")  # wrong
ol.op.celu(x, 0.5, 0.5)  # wrong
ol.op.softmax("x")  # wrong
ol.op.reshape(x)  # wrong
ol.op.reshape(x, shape=(2.5, 2))  # wrong
ol.op.cast(x, 32)  # wrong
ol.op.relu(x, x)  # wrong
ol.op.maximum(x, "0")  # wrong
ol.layer.fc(x, 10, size_of=3)  # wrong
ol.layer.fc(x, "10")  # wrong
ol.optimizer.SGD(lerning_rate=0.1)  # wrong
x + "1"  # wrong
x @ 2.0  # wrong
x["a"]  # wrong
for each in x:  # wrong
    pass
"""


def test_a_type_checker_tells_right_from_wrong(tmp_path):
    pytest.importorskip("pyright", reason="the dependency group dev is not installed")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    settings = {"include": ["program.py"], "extraPaths": [str(ROOT / "src")], "reportUnusedExpression": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [item for item in json.loads(done.stdout)["generalDiagnostics"] if item["severity"] == "error"]
    lines = PROGRAM.splitlines()
    wrong = {number for number, line in enumerate(lines) if line.endswith("# wrong")}
    assert {item["range"]["start"]["line"] for item in found} == wrong, "\n".join(
        f"{lines[item['range']['start']['line']]}: {item['message']}" for item in found
    )

"""The structure of the package: allowed imports, names of files, public names."""

import ast
import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import oarlock

PACKAGE = Path(oarlock.__file__).parent
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
GENERATED = {"proto/program_pb2.py"}
CODE = [file for file in FILES if file not in GENERATED]

FLOORS = {
    "errors": 0,
    "garbage_collection": 0,
    "out_of_memory": 0,
    "suggestions": 0,
    "proto": 1,
    "drawing": 2,
    "plotting": 11,
    "report": 12,
    "ir": 2,
    "old_names": 2,
    "registry": 3,
    "backend.torch.private": 4,
    "tensor": 4,
    "op": 5,
    "backend": 6,
    "passes": 7,
    "runtime": 8,
    "layer": 9,
    "metric": 10,
    "optimizer": 10,
    "testing": 11,
    "training": 11,
    "profiling": 11,
    "data": 11,
    "datasets": 11,
    "io": 11,
    "inference": 11,
    "compat_2017": 11,
    "interop": 12,
    "serving": 12,
    "cli": 13,
    "__main__": 14,
}
PACKAGES = ("oarlock", *(f"oarlock.{name}" for name in FLOORS if (PACKAGE / name / "__init__.py").exists()))

PUBLIC = [
    "ArgumentError",
    "Block",
    "CPUPlace",
    "Case",
    "Context",
    "DType",
    "DTypeError",
    "DataError",
    "DeclarationError",
    "Executor",
    "FeedError",
    "FormatError",
    "GPUPlace",
    "GradCheck",
    "GradientError",
    "KernelError",
    "LimitError",
    "Limits",
    "MissingFileError",
    "Model",
    "Net",
    "NetBuilder",
    "NotFiniteError",
    "OarlockError",
    "Place",
    "ProcessLimits",
    "ProcessSettings",
    "Profile",
    "Program",
    "ProgramDrawing",
    "ProgramError",
    "ProgramSummary",
    "Ragged",
    "ReadError",
    "Rejects",
    "RowGradient",
    "RunLimits",
    "Scope",
    "ScopeError",
    "ShapeError",
    "Step",
    "SummaryRow",
    "TrainingProgramError",
    "TrainingResult",
    "UndefinedVarError",
    "UnknownOperatorError",
    "UnsetVarError",
    "UnsupportedError",
    "Var",
    "Variable",
    "VerifyError",
    "WorkerError",
    "WriteError",
    "add",
    "append_backward",
    "at_place",
    "case",
    "cond",
    "configure_process",
    "content_hash",
    "cpp",
    "create_rnn",
    "data",
    "datasets",
    "default_program",
    "diff_programs",
    "draw",
    "errors",
    "eval",
    "evaluate",
    "fc",
    "framework",
    "from_onnx",
    "from_torch",
    "get_variable",
    "gradients",
    "ifelse",
    "infer",
    "infer_shape",
    "inference",
    "init",
    "initializer",
    "io",
    "ir",
    "larger_than",
    "layer",
    "load_model",
    "load_weights",
    "metric",
    "minibatch",
    "net",
    "op",
    "operator",
    "optimizer",
    "parse_program",
    "passes",
    "profile",
    "profiling",
    "prune",
    "quantize",
    "registry",
    "rnn",
    "run_block",
    "run_untrusted",
    "runtime",
    "save_model",
    "scope",
    "sequence",
    "settings",
    "sigmoid",
    "summary",
    "switch",
    "switch_case",
    "testing",
    "to_onnx",
    "to_torch_state",
    "train",
    "training",
    "var",
    "variable",
    "while_loop",
]


def module_of(file: str) -> str:
    parts = ["oarlock", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor_of(module: str) -> int:
    """Return the floor of a module such as `oarlock.ir.block`: its own, or that of its first name below the package."""
    below = module.removeprefix("oarlock.")
    return FLOORS.get(below, FLOORS[below.split(".")[0]])


@functools.cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield nested statements at any depth, except those for type checkers; expressions, most of a tree, are not visited."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        if field == "body" and isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        for inner in getattr(node, field, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


def imported(file: str) -> list[tuple[int, str]]:
    """Yield (line, module) of every import of the package in a file, at any depth, except those for type checkers."""
    found = []
    for node in statements(tree_of(file)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            base = node.module or ""
            for alias in node.names:
                below = f"{base}.{alias.name}".removeprefix("oarlock.").split(".")[0]
                found.append((node.lineno, f"{base}.{alias.name}" if base == "oarlock" and below in FLOORS else base))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return [(line, module) for line, module in found if module.split(".")[0] == "oarlock"]


def wrong_imports(file: str) -> list[str]:
    floor = floor_of(module_of(file))
    return [
        f"{file}:{line} (floor {floor}) imports {module}"
        for line, module in imported(file)
        if module == "oarlock" or floor_of(module) > floor
    ]


def test_every_file_stands_on_a_floor():
    assert [file for file in FILES if file != "__init__.py" and file.split("/")[0].removesuffix(".py") not in FLOORS] == []


def test_a_file_imports_only_from_its_floor_or_below():
    assert [line for file in CODE if file != "__init__.py" for line in wrong_imports(file)] == []


def test_no_file_compiles_or_runs_text():
    """The content of a file is data. Exceptions: a plan compiles generated text; variants are compiled from the source of their kernel."""
    found = [
        f"{file} calls {node.func.id}"
        for file in CODE
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "compile", "__import__")
    ]
    places = ("backend/torch/rewriting.py", "runtime/plan/plan.py")
    assert found == [f"{place} calls {name}" for place in places for name in ("exec", "compile")]


def test_no_file_is_called_utils():
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "tools"}
    assert [file for file in FILES if vague & set(file.removesuffix(".py").split("/"))] == []


def test_no_file_name_begins_with_an_underscore():
    assert [file for file in FILES if Path(file).stem.startswith("_") and Path(file).stem not in ("__init__", "__main__")] == []


def test_no_docstring_begins_with_what():
    """A docstring is a noun or an action: "The outputs of a node", not "What a node gives"."""
    root = Path(__file__).parent.parent.parent
    files = [path for folder in ("src", "tests", "tools", "benchmarks", "examples", "docs") for path in (root / folder).rglob("*.py")]
    assert [str(path.relative_to(root)) for path in files if re.search(r'^ *"""What', path.read_text(), re.MULTILINE)] == []


def test_every_module_is_imported_by_its_dotted_path():
    modules = {file: importlib.import_module(module_of(file)) for file in FILES if file != "__main__.py"}
    assert [file for file, module in modules.items() if Path(module.__file__).relative_to(PACKAGE).as_posix() != file] == []


def test_every_name_in_all_is_there():
    modules = [importlib.import_module(module_of(file)) for file in CODE if not file.endswith("__main__.py")]
    missing = [f"{module.__name__}.{name}" for module in modules for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert missing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_a_function_and_not_the_module_of_its_name(package):
    """Otherwise the meaning of `from package import name` depends on earlier imports."""
    module = importlib.import_module(package)
    folder = Path(module.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    for name in modules & set(getattr(module, "__all__", ())):
        named = importlib.import_module(f"{package}.{name}")
        defined = getattr(named, name, named)
        assert getattr(module, name) is (named if isinstance(defined, ModuleType) else defined)


@pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("__init__.pyi")), ids=lambda stub: stub.parent.name)
def test_what_editors_see_of_a_package_is_what_it_loads(stub):
    """Lazily loaded names are written twice: for Python and for editors."""
    package = importlib.import_module(".".join(("oarlock", *stub.parent.relative_to(PACKAGE).parts)))
    lines = ast.parse(stub.read_text(encoding="utf-8")).body
    imports = [node for node in lines if isinstance(node, ast.ImportFrom)]
    seen = {
        alias.asname: (node.module, alias.name) for node in imports for alias in node.names if not (alias.asname or "_").startswith("_")
    }
    others = {target.id for node in lines if isinstance(node, ast.Assign) for target in node.targets}
    operators = {node.name for node in lines if isinstance(node, ast.FunctionDef)}
    functions = operators - (set(oarlock.registry.standard.operators) - set(package.__all__))
    assert sorted({*seen, *others, *functions}) == sorted(package.__all__)
    for name, (module, attribute) in seen.items():
        home = importlib.import_module(module)
        found = getattr(home, attribute, None) or importlib.import_module(f"{module}.{attribute}")
        assert inspect.unwrap(getattr(package, name)) is inspect.unwrap(found)


def test_no_module_bears_the_name_of_an_operator():
    importlib.import_module("oarlock.op.update")
    modules = {Path(file).stem for file in FILES if file.startswith("op/")}
    assert modules & set(oarlock.registry.standard.operators) == set()


def test_the_public_names_are_these():
    assert sorted(oarlock.__all__) == sorted(PUBLIC)


def test_public_names_resolve():
    assert [name for name in PUBLIC if getattr(oarlock, name, None) is None or name not in dir(oarlock)] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'oarlock' has no attribute 'nothing'; dir\(ol\) lists all names$"):
        _ = oarlock.nothing


@pytest.mark.parametrize("module", ["oarlock.errors", "oarlock.proto", "oarlock.ir", "oarlock.registry"])
def test_programs_and_declarations_load_no_torch(module):
    script = f"import sys, {module}; print(sorted({{'torch', 'numpy'}} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"


def test_programs_and_declarations_are_used_without_torch():
    """No function imports it lazily either: a program is built, printed, written and read."""
    script = """
import sys
from oarlock.ir import DType, Program
from oarlock.registry import Catalogue, op_proto, operator, typecheck
catalogue = Catalogue()
@operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
def twice(x):
    return x + x
with Program() as program:
    x = program.main.new_var("x", DType.FLOAT32, ("n",))
    program.main.inputs.append(x)
    twice(x)
copy = Program.from_bytes(program.to_bytes())
typecheck(copy, catalogue)
assert "twice" in str(copy) and op_proto(catalogue.get("twice")).type == "twice"
print("torch" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "False\n"


def test_inference_loads_no_optimizer():
    heavy = ("oarlock.optimizer", "oarlock.training", "oarlock.op.update", "oarlock.passes.backward")
    script = f"import sys, oarlock.inference; print([name for name in sys.modules if name.startswith({heavy})])"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"


def test_no_file_is_longer_than_400_lines():
    lengths = {file: len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) for file in CODE}
    assert {file: length for file, length in lengths.items() if length > 400} == {}


def test_the_meaning_of_a_program_is_read_in_one_sitting():
    files = ("runtime/interpreter.py", "runtime/scope.py", "passes/backward.py")
    assert sum(len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) for file in files) < 800


def test_nobody_counts_who_holds_a_tensor():
    """Reference counts depend on the version of Python, and do not include memory views. Variables record the values that they lent."""
    counting = {
        file for file in CODE if re.search(r"getrefcount|_storage_Use_Count|_use_count", (PACKAGE / file).read_text(encoding="utf-8"))
    }
    assert not counting

"""The names of PyTorch that are not public: in one file, and none of them needed."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
import torch

import oarlock
from oarlock.backend.torch import private, variants
from oarlock.testing import check_operator

PACKAGE = Path(oarlock.__file__).parent
HOME = "backend/torch/private.py"


def imported(node: ast.AST) -> list[str]:
    """The names that a statement imports, whole: `torch._inductor` of `from torch import _inductor as inductor`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def private_names(source: str) -> list[str]:
    """The names of PyTorch, or of its tensors, in a file that begin with one underscore: `torch._foreach_mul`, `storage._cdata`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [name for name in imported(node) if name.startswith("torch.") and "._" in name]
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            whole = ast.unparse(node)
            if whole.startswith(("torch.", "aten.")) or "storage()" in whole or node.attr in ("_schema", "_overloadname"):
                found.append(whole)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and ast.unparse(node.args[1]).startswith("'_"):
            found += [ast.unparse(node)] if ast.unparse(node.args[0]).startswith("torch") else []
    return found


def test_they_stand_in_one_file():
    files = sorted(PACKAGE.rglob("*.py"))
    found = {path.relative_to(PACKAGE).as_posix(): private_names(path.read_text(encoding="utf-8")) for path in files}
    assert len(found.pop(HOME)) >= 4
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch._inductor", ["torch._inductor"]),
        ("import torch._inductor.config as config, numpy._core", ["torch._inductor.config"]),
        ("from torch import _foreach_mul", ["torch._foreach_mul"]),
        ("from torch import _inductor as inductor, nn", ["torch._inductor"]),
        ("from torch._subclasses.fake_tensor import FakeTensorMode", ["torch._subclasses.fake_tensor.FakeTensorMode"]),
        ("def f():\n    from torch.ops.aten import _softmax", ["torch.ops.aten._softmax"]),
        ("y = torch._foreach_mul(xs, 2)", ["torch._foreach_mul"]),
        ("y = aten._softmax.default(x)", ["aten._softmax"]),
        ("n = x.untyped_storage()._cdata", ["x.untyped_storage()._cdata"]),
        ("s = overload._schema", ["overload._schema"]),
        ("f = getattr(torch, '_foreach_mul')", ["getattr(torch, '_foreach_mul')"]),
        ("from oarlock import _x; from torch import nn; import torch; torch.__version__", []),
    ],
)
def test_each_way_to_a_private_name_is_seen(source, names):
    assert sorted(private_names(source)) == sorted(names)


def pytorch_in(folder: Path) -> list[str]:
    """The files of a folder, and of those in it, that import PyTorch."""
    files = {path: ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(folder.rglob("*.py"))}
    names = {path: [name for node in nodes for name in imported(node)] for path, nodes in files.items()}
    return [path.relative_to(folder).as_posix() for path, found in names.items() if any(name.split(".")[0] == "torch" for name in found)]


def test_pytorch_is_not_in_the_registry(tmp_path):
    assert pytorch_in(PACKAGE / "registry") == []
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file.py").write_text("def f():\n    from torch import nn\n")
    assert pytorch_in(tmp_path) == ["inner/file.py"]


def tensors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.rand(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("axis", [0, -1])
def test_gradients_of_softmax_without_the_name(axis):
    y, dy = (torch.softmax(x, axis) for x in tensors((3, 4), (3, 4)))
    for found, fallback, into in (
        (private.softmax_backward, private._softmax_backward, "grad_input"),
        (private.log_softmax_backward, private._log_softmax_backward, "out"),
    ):
        assert found is not fallback
        expected, out = found(dy, y, axis, y.dtype), torch.empty_like(y)
        torch.testing.assert_close(fallback(dy, y, axis, y.dtype), expected)
        assert fallback(dy, y, axis, y.dtype, **{into: out}) is out
        torch.testing.assert_close(out, expected)


def test_many_tensors_at_once_without_the_names():
    xs, ys = tensors((2, 3), (4,)), tensors((2, 3), (4,))[::-1][::-1]
    factor = torch.tensor(0.3, dtype=torch.float64)
    torch.testing.assert_close(private._each_mul(xs, factor), list(private.foreach_mul(xs, factor)))
    torch.testing.assert_close(private._each_sub(xs, ys, alpha=0.3), list(private.foreach_sub(xs, ys, alpha=0.3)))
    for function, fallback in ((private.foreach_sub_, private._each_sub_), (private.foreach_copy_, private._each_copy_)):
        mine, its = [x.clone() for x in xs], [x.clone() for x in xs]
        function(mine, ys)
        fallback(its, ys)
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("has_instructions", [False, True])
@pytest.mark.parametrize("columns", [1, 70, 1024, 1025, 5000])
def test_products_of_integers_are_exact_with_instructions_for_them_and_without(columns, has_instructions, monkeypatch):
    if private._int_mm is None and has_instructions:
        pytest.skip("PyTorch has no such product")
    monkeypatch.setattr(private, "_HAS_INT8", has_instructions)
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8) for shape in ((3, columns), (columns, 5)))
    x[0], y[:, 0] = -128, -128  # the largest sum that there may be
    x[1], y[:, 1] = 127, 127  # the largest whose products are odd: beyond 2 ** 24 float32 has no odd numbers
    found = private.multiply_int8(x, y)
    assert found.dtype == torch.int32
    assert torch.equal(found.double(), x.double() @ y.double())
    for empty in (private.multiply_int8(x[:0], y), private.multiply_int8(x[:, :0], y[:0])):
        assert (empty.dtype, empty.count_nonzero().item()) == (torch.int32, 0)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_sgd_without_the_name(nesterov, first):
    given = [tensors((2, 3), (4,)) for _ in range(6)]
    options = {
        "lr": 0.1,
        "momentum": 0.9,
        "is_first_step": first,
        "nesterov": nesterov,
        "dampening": 0.0,
        "weight_decay": 0.0,
        "maximize": False,
    }
    for function, values in ((private.fused_sgd_, given[:3]), (private._sgd_, given[3:])):
        function(*values, **options)
    torch.testing.assert_close(given[:3], given[3:])


@pytest.mark.parametrize(("ours", "theirs", "decay"), [("fused_adam_", "_adam_", 0.0), ("fused_adamw_", "_adamw_", 0.1)])
def test_adam_without_the_name(ours, theirs, decay):
    given = [tensors((2, 3), (4,)) for _ in range(8)]
    steps = [torch.tensor(3.0), torch.tensor(3.0)]
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": decay, "amsgrad": False, "maximize": False}
    for function, values in ((getattr(private, ours), given[:4]), (getattr(private, theirs), given[4:])):
        function(*values, [], steps, **options)
    torch.testing.assert_close(given[:4], given[4:])


@pytest.mark.parametrize("missing", ["_set_excluded", "_EXCLUDED"])
def test_a_kernel_may_ask_for_gradients_without_the_names(missing, monkeypatch):
    monkeypatch.setattr(private, missing, None)

    def slope(x):
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            return torch.autograd.grad((leaf**2).sum(), leaf)[0]

    x = torch.ones(3, requires_grad=True)
    with private.below_some_autograd():
        assert private.with_autograd(slope) is slope
        assert slope(x).tolist() == [2.0, 2.0, 2.0]
        assert not (x * 2).requires_grad


def test_a_plan_computes_the_same_without_schemas(monkeypatch):
    """Then PyTorch tells of no function that it can write into a tensor."""
    with oarlock.Program() as program:
        y = oarlock.op.tanh(oarlock.op.exp(oarlock.layer.data("x", [3])))
    feed = {"x": torch.tensor([[0.0, 1.0, 2.0]])}
    (expected,) = oarlock.Executor().run(program, feed, [y], scope=oarlock.Scope())
    monkeypatch.setattr(private, "_schema_of", lambda overload: None)
    private.overloads.cache_clear()
    try:
        assert not any(overload.written for overload in private.overloads(torch.exp))
        assert not private.takes_out(torch.exp, "out", 1, ())
        assert private.overloads(torch.exp)[0].name
        monkeypatch.setattr(variants, "_variants", WeakKeyDictionary())
        assert variants.variants_of(oarlock.op.exp).out is None
        (found,) = oarlock.Executor().run(program, feed, [y], scope=oarlock.Scope())
    finally:
        private.overloads.cache_clear()
    assert (found == expected).all()


def test_there_are_no_regions_without_tensors_that_have_no_values(monkeypatch):
    with oarlock.Program() as program:
        x = oarlock.layer.data("x", [3])
        y = oarlock.op.tanh(oarlock.op.exp(oarlock.op.neg(oarlock.op.square(x))))
    monkeypatch.setitem(sys.modules, "torch._subclasses.fake_tensor", None)
    with pytest.raises(ImportError):
        private.fake_tensors()
    executor = oarlock.Executor(backend="inductor")
    assert "region" not in executor.plan(program, [y]).text
    (found,) = executor.run(program, {"x": torch.ones(2, 3)}, [y], scope=oarlock.Scope())
    assert found.tolist() == oarlock.Executor().run(program, {"x": torch.ones(2, 3)}, [y], scope=oarlock.Scope())[0].tolist()


def test_tensors_of_one_memory_are_told_though_they_have_no_values():
    with private.fake_tensors():
        x, other = torch.empty(3, 4), torch.empty(3, 4)
        assert private.same_storage(x) == private.same_storage(x.t())
        assert private.same_storage(x) != private.same_storage(other)


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "conv2d"])
def test_operators_keep_their_cases_without_the_names(name, monkeypatch):
    monkeypatch.setattr("oarlock.tensor.attention.flash_attention", None)
    monkeypatch.setattr(private, "pack_filter", None)
    check_operator(getattr(oarlock.op, name))


WITHOUT = """
import torch
gone = ["_softmax_backward_data", "_log_softmax_backward_data", "_foreach_mul", "_foreach_sub", "_foreach_sub_", "_foreach_copy_",
        "_fused_sgd_", "_fused_adam_", "_fused_adamw_"]
kept = {name: getattr(torch, name) for name in gone}
WITHOUT = %s
if WITHOUT:
    for name in gone:
        delattr(torch, name)
    for name in ("_ExcludeDispatchKeyGuard", "_get_mkldnn_enabled", "_dispatch_tls_set_dispatch_key_excluded", "DispatchKeySet"):
        delattr(torch._C, name)
    del torch._C._dynamo.guards.TensorGuards
import numpy
import oarlock as ol
from oarlock.backend.torch import private
assert (private.fused_adam_ is private._adam_) == WITHOUT and (private._exclude is None) == WITHOUT
random = numpy.random.default_rng(0)
with ol.Program(seed=0) as program:
    x, label = ol.layer.data("x", [1, 6, 6]), ol.layer.data("label", [], dtype="int64")
    h = ol.layer.flatten(ol.layer.conv2d(x, 4, 3))
    cost = ol.layer.mean(ol.layer.cross_entropy(ol.layer.fc(h, 3), label))
    ol.optimizer.Adam(0.01).minimize(cost)
scope, executor = ol.init(program, ol.Scope()), ol.Executor()
for _ in range(5):
    feed = {"x": random.normal(size=(8, 1, 6, 6)).astype("float32"), "label": random.integers(0, 3, size=8)}
    print(float(executor.run(program, feed, [cost], scope=scope)[0]))
"""


def test_a_model_trains_where_pytorch_has_none_of_the_names():
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    runs = [
        subprocess.run([sys.executable, "-c", WITHOUT % without], capture_output=True, text=True, check=True, env=environment).stdout
        for without in (False, True)
    ]
    ours, theirs = ([float(line) for line in run.split()] for run in runs)
    assert len(ours) == 5
    assert theirs == pytest.approx(ours, rel=1e-4)

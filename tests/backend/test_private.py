"""The names of PyTorch that are not public: in one file, and none of them needed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import oarlock
from oarlock.backend.torch import private
from oarlock.testing import check_operator

PACKAGE = Path(oarlock.__file__).parent
HOME = "backend/torch/private.py"


def private_names(path: Path) -> list[str]:
    """The names of PyTorch, or of its tensors, in a file that begin with one underscore: `torch._foreach_mul`, `storage._cdata`."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            found += [name for name in (node.module or "").split(".") if name.startswith("_")]
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            whole = ast.unparse(node)
            if whole.startswith(("torch.", "aten.")) or "storage()" in whole or node.attr in ("_schema", "_overloadname"):
                found.append(whole)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and ast.unparse(node.args[1]).startswith("'_"):
            found += [ast.unparse(node)] if ast.unparse(node.args[0]).startswith("torch") else []
    return found


def test_they_stand_in_one_file():
    found = {path.relative_to(PACKAGE).as_posix(): private_names(path) for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(found.pop(HOME)) >= 5
    assert {file: names for file, names in found.items() if names} == {}


def test_pytorch_is_not_in_the_registry():
    for path in (PACKAGE / "registry").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "torch"], path.name


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


def test_adam_without_the_name():
    given = [tensors((2, 3), (4,)) for _ in range(8)]
    steps = [torch.tensor(3.0), torch.tensor(3.0)]
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
    for function, values in ((private.fused_adam_, given[:4]), (private._adam_, given[4:])):
        function(*values, [], steps, **options)
    torch.testing.assert_close(given[:4], given[4:])


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "conv2d"])
def test_operators_keep_their_cases_without_the_names(name, monkeypatch):
    monkeypatch.setattr("oarlock.tensor.attention.flash_attention", None)
    monkeypatch.setattr(private, "pack_filter", None)
    check_operator(getattr(oarlock.op, name))


WITHOUT = """
import torch
gone = ["_softmax_backward_data", "_log_softmax_backward_data", "_foreach_mul", "_foreach_sub", "_foreach_sub_", "_foreach_copy_",
        "_fused_sgd_", "_fused_adam_"]
kept = {name: getattr(torch, name) for name in gone}
WITHOUT = %s
if WITHOUT:
    for name in gone:
        delattr(torch, name)
    for name in ("_ExcludeDispatchKeyGuard", "_get_mkldnn_enabled"):
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

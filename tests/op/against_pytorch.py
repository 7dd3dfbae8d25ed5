"""One function written with our operators, and PyTorch's: values and gradients of both, in float64, by plan and by interpreter."""

from collections.abc import Callable, Sequence

import torch
from tolerances import AUTOGRAD

import oarlock as ol

__all__ = ["Row", "require_same"]

Row = tuple[Callable, Callable, Sequence]
"""A call of ours, PyTorch's, and the inputs: a tuple is a shape, filled with seeded random numbers."""


def require_same(row: Row, *, symbols: bool = True):
    """Compare all outputs, and the gradients of the sum of the squares of those that are floats; with `symbols`, of unknown sizes, too."""
    ours, theirs, given = row
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(item, dtype=torch.float64, generator=generator) if isinstance(item, tuple) else item for item in given]
    expected = _by_pytorch(theirs, inputs)
    for unknown in (False, True) if symbols else (False,):
        for interpret in (False, True):
            found = _by_program(ours, inputs, symbols=unknown, interpret=interpret)
            assert [item.dtype for item in found] == [item.dtype for item in expected]
            torch.testing.assert_close(found, expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def _list(outputs: object) -> list:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def _by_pytorch(function: Callable, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    leaves = [item.clone().requires_grad_(item.is_floating_point()) for item in inputs]
    outputs = _list(function(*leaves))
    floats = [item for item in outputs if item.is_floating_point()]
    if any(item.requires_grad for item in floats):
        sum(item.square().sum() for item in floats).backward()
    return [*(item.detach() for item in outputs), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def _by_program(function: Callable, inputs: Sequence[torch.Tensor], *, symbols: bool, interpret: bool) -> list[torch.Tensor]:
    with ol.Program() as program:
        vars: list[ol.Var] = []
        for number, item in enumerate(inputs):
            shape = [f"d{size}" if symbols and size > 1 else size for size in item.shape]
            vars.append(ol.layer.data(f"x{number}", shape, str(item.dtype).removeprefix("torch."), batch=None))
        outputs = _list(function(*vars))
        targets = [ol.op.reduce_sum(ol.op.square(item)) for item in outputs if item.dtype.is_floating]
        floats = [var for var in vars if var.dtype.is_floating]
        found = ol.gradients(targets, floats) if targets and floats else []
        fetch = [*outputs, *(gradient for gradient in found if gradient is not None)]
    feed = {var.name: item for var, item in zip(vars, inputs, strict=True)}
    return ol.Executor(interpret=interpret, check=interpret).run(program, feed, fetch, scope=ol.Scope(), return_numpy=False)

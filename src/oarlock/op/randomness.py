"""Operators that draw random numbers."""

import torch

from oarlock.errors import ArgumentError
from oarlock.op.elementwise import multiply
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["dropout"]


@operator(
    "x: float[...s] -> y: float[...s], mask: float[...s]",
    intermediate=("mask",),
    effects="random",
    checks_values=True,
    variable_attributes=("rate",),
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], rate=0.5, y=[1.0, 2.0], mask=[1.0, 1.0]),
        GradCheck(x=(3, 4), rate=0.25),
        Rejects("rate is a share from 0 to 1, not 1.5", x=(2,), rate=1.5),
    ],
)
def dropout(context, x, *, rate: float = 0.5, random_id: int):
    """In training, zero each element with probability ``rate`` and divide the others by ``1 - rate``; else ``y = x``.

    Which elements are dropped follows from the program's seed, the op and the step alone (Srivastava et al., 2014).
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(_no_share(rate))
    if not context.training:
        return x, torch.ones_like(x)
    mask = (context.uniform(x.shape, random_id) >= rate).to(x.dtype).div_(1.0 - rate) if rate < 1.0 else torch.zeros_like(x)
    return x * mask, mask


@dropout.infer_shape
def dropout_shapes(x, *, rate, random_id):
    if not 0.0 <= rate <= 1.0:
        raise ArgumentError(_no_share(rate))
    return x.shape, x.shape


def _no_share(rate: float) -> str:
    return f"rate is a share from 0 to 1, not {rate}"


@dropout.gradient("x")
def dropout_dx(mask, dy):
    return dy * mask


dropout_dx.gradient_programs(dy=lambda mask, ddx: multiply(ddx, mask))

dropout_dx.no_gradient("mask")

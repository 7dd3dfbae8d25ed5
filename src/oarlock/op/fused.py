"""Operators that combine two or three operators in one pass over memory.

`passes/fusion/sums.py` creates them; programs do not need to use them.
"""

import torch

from oarlock.op.creation import full
from oarlock.op.elementwise import multiply, neg, subtract
from oarlock.op.matrix import linear, linear_dw, linear_dx
from oarlock.op.reduction import fit_to
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck
from oarlock.tensor.indexing import onto_rows

__all__ = ["addcmul", "addmm", "addmm_nt", "lerp"]


@operator(
    "base: float[*~b n], x: float[*~b k], w: float[k n] -> out: float[*b n]",
    sensitive_to="place",
    cases=[
        Case(base=[[100.0]], x=[[1.0, 2.0]], w=[[3.0], [4.0]], out=[[111.0]]),
    ],
)
def addmm(base, x, w):
    """Rows times a shared matrix, added to ``base``: ``out = base + x @ w``."""
    return torch.addmm(base, x, w) if x.dim() == 2 else onto_rows(base, x, w)


addmm.gradient_programs(
    base=lambda dout: dout,
    x=lambda w, dout: linear_dx(w, dout),
    w=lambda x, dout: linear_dw(x, dout),
)


@operator(
    "base: float[*~b k], w: float[k n], x: float[*~b n] -> out: float[*b k]",
    sensitive_to="place",
    cases=[
        Case(base=[[100.0, 200.0]], w=[[3.0], [4.0]], x=[[2.0]], out=[[106.0, 208.0]]),
    ],
)
def addmm_nt(base, w, x):
    """Rows times a transposed shared matrix, added to ``base``: ``out = base + x @ w.T``, as in the gradient of ``linear``."""
    return torch.addmm(base, x, w.mT) if x.dim() == 2 else onto_rows(base, x, w.mT)


addmm_nt.gradient_programs(
    base=lambda dout: dout,
    w=lambda x, dout: linear_dw(dout, x),
    x=lambda w, dout: linear(dout, w),
)


@operator(
    "base: float[*#s], x: float[*#s], y: float[*#s] -> z: float[*#s]",
    cases=[
        Case(base=[10.0, 20.0], x=[1.0, 2.0], y=[3.0, 5.0], z=[13.0, 30.0]),
        Case(base=[10.0, 20.0], x=[1.0, 2.0], y=[3.0, 5.0], subtracted=True, z=[7.0, 10.0]),
        Case(base=[[10.0], [20.0]], x=[1.0, 2.0], y=3.0, z=[[13.0, 16.0], [23.0, 26.0]]),
        GradCheck(),
        GradCheck(subtracted=True),
    ],
)
def addcmul(base, x, y, *, subtracted: bool = False):
    """``z = base + x * y``, or ``z = base - x * y`` if ``subtracted``; elementwise."""
    return torch.addcmul(base, x, y, value=-1) if subtracted else torch.addcmul(base, x, y)


addcmul.gradient_programs(
    base=lambda dz, base_shape: fit_to(dz, base_shape),
    x=lambda y, dz, x_shape, *, subtracted: fit_to(_signed(multiply(dz, y), subtracted), x_shape),
    y=lambda x, dz, y_shape, *, subtracted: fit_to(_signed(multiply(dz, x), subtracted), y_shape),
)


def _signed(gradient, subtracted):
    return neg(gradient) if subtracted else gradient


@operator(
    "start: float[*~b], end: float[*~b], weight: float[*~b] -> y: float[*b]",
    cases=[Case(start=[10.0, 10.0, 10.0], end=[20.0, 20.0, 20.0], weight=[0.0, 0.25, 1.0], y=[10.0, 12.5, 20.0])],
)
def lerp(start, end, weight):
    """Linear interpolation from ``start`` to ``end``: ``y = (1 - weight) * start + weight * end``."""
    return torch.lerp(start, end, weight)


lerp.gradient_programs(
    start=lambda weight, dy: multiply(dy, subtract(full(shape=(), value=1.0, dtype=weight.dtype), weight)),
    end=lambda weight, dy: multiply(dy, weight),
    weight=lambda start, end, dy: multiply(dy, subtract(end, start)),
)

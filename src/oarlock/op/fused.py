"""Operators that do the work of two or three in one pass over memory.

Nobody needs to write them: `passes/fusion/sums.py` forms them from the operators that they stand for.
"""

import torch

from oarlock.op.elementwise import multiply, negative, subtract
from oarlock.op.filling import fill
from oarlock.op.matrix import linear, linear_dw, linear_dx
from oarlock.op.trusted import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.rows import onto_rows

__all__ = ["interpolate", "linear_dx_onto", "linear_onto", "multiply_add"]


@operator(
    "base: float[*b n], x: float[*b k], w: float[k n] -> out: float[*b n]",
    rounds_by="place",
    cases=[
        Case(base=[[100.0]], x=[[1.0, 2.0]], w=[[3.0], [4.0]], out=[[111.0]]),
        GradCheck(base=(5, 2, 4), x=(5, 2, 3), w=(3, 4)),
        GradCheck(base=(2, 4), x=(2, 3), w=(3, 4)),
        GradCheck(base=(4,), x=(3,), w=(3, 4)),
        Rejects("dimension n is 3 in base but 2 in w", base=(2, 3), x=(2, 4), w=(4, 2)),
    ],
)
def linear_onto(base, x, w):
    """Rows times a shared matrix, added to what is there: ``out = base + x @ w``."""
    return torch.addmm(base, x, w) if x.dim() == 2 else onto_rows(base, x, w)


@linear_onto.gradient_program("base")
def linear_onto_dbase(dout):
    return dout


@linear_onto.gradient_program("x")
def linear_onto_dx(w, dout):
    return linear_dx(w, dout)


@linear_onto.gradient_program("w")
def linear_onto_dw(x, dout):
    return linear_dw(x, dout)


@operator(
    "base: float[*b k], w: float[k n], given: float[*b n] -> out: float[*b k]",
    rounds_by="place",
    cases=[
        Case(base=[[100.0, 200.0]], w=[[3.0], [4.0]], given=[[2.0]], out=[[106.0, 208.0]]),
        GradCheck(base=(5, 2, 3), w=(3, 4), given=(5, 2, 4)),
        GradCheck(base=(2, 3), w=(3, 4), given=(2, 4)),
        GradCheck(base=(3,), w=(3, 4), given=(4,)),
        Rejects("dimension n is 4 in w but 2 in given", base=(2, 3), w=(3, 4), given=(2, 2)),
    ],
)
def linear_dx_onto(base, w, given):
    """The gradient ``given`` at the output of ``linear``, led back to its rows and added to what is there: ``out = base + given @ w.T``."""
    return torch.addmm(base, given, w.mT) if given.dim() == 2 else onto_rows(base, given, w.mT)


@linear_dx_onto.gradient_program("base")
def linear_dx_onto_dbase(dout):
    return dout


@linear_dx_onto.gradient_program("w")
def linear_dx_onto_dw(given, dout):
    return linear_dw(dout, given)


@linear_dx_onto.gradient_program("given")
def linear_dx_onto_dgiven(w, dout):
    return linear(dout, w)


@operator(
    "base: float[*b], x: float[*b], y: float[*b] -> z: float[*b]",
    cases=[
        Case(base=[10.0, 20.0], x=[1.0, 2.0], y=[3.0, 5.0], z=[13.0, 30.0]),
        Case(base=[10.0, 20.0], x=[1.0, 2.0], y=[3.0, 5.0], subtracted=True, z=[7.0, 10.0]),
        GradCheck(base=(2, 3), x=(2, 3), y=(2, 3)),
        GradCheck(base=(2, 3), x=(2, 3), y=(2, 3), subtracted=True),
        Rejects("*b is [2, 3] in base but [3] in x", base=(2, 3), x=(3,), y=(2, 3)),
    ],
)
def multiply_add(base, x, y, *, subtracted: bool = False):
    """``z = base + x * y``, or ``base - x * y`` where the product is ``subtracted``; element by element."""
    return torch.addcmul(base, x, y, value=-1) if subtracted else torch.addcmul(base, x, y)


@multiply_add.gradient_program("base")
def multiply_add_dbase(dz):
    return dz


@multiply_add.gradient_program("x")
def multiply_add_dx(y, dz, *, subtracted):
    return _signed(multiply(dz, y), subtracted)


@multiply_add.gradient_program("y")
def multiply_add_dy(x, dz, *, subtracted):
    return _signed(multiply(dz, x), subtracted)


def _signed(gradient, subtracted):
    return negative(gradient) if subtracted else gradient


@operator(
    "start: float[*b], end: float[*b], weight: float[*b] -> y: float[*b]",
    cases=[
        Case(start=[10.0, 10.0, 10.0], end=[20.0, 20.0, 20.0], weight=[0.0, 0.25, 1.0], y=[10.0, 12.5, 20.0]),
        GradCheck(start=(2, 3), end=(2, 3), weight=[[0.2, 0.7, 0.9], [-0.4, 1.3, 0.1]]),
    ],
)
def interpolate(start, end, weight):
    """Interpolate between ``start``, where the weight is 0, and ``end``, where it is 1: ``y = (1 - weight) * start + weight * end``."""
    return torch.lerp(start, end, weight)


@interpolate.gradient_program("start")
def interpolate_dstart(weight, dy):
    return multiply(dy, subtract(fill(shape=(), value=1.0, dtype=weight.dtype), weight))


@interpolate.gradient_program("end")
def interpolate_dend(weight, dy):
    return multiply(dy, weight)


@interpolate.gradient_program("weight")
def interpolate_dweight(start, end, dy):
    return multiply(dy, subtract(end, start))

"""Elementwise arithmetic, with broadcasting. Functions of one number are in `op/unary.py`."""

import torch

from oarlock.op.complex_parts import conjugated
from oarlock.op.reduction import fit_to
from oarlock.op.rounding import trunc
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.stacks import add_stacks

__all__ = [
    "add",
    "assign",
    "clip",
    "divide",
    "floor_divide",
    "fmod",
    "multiply",
    "neg",
    "optimization_barrier",
    "remainder",
    "subtract",
    "sum_",
]


@operator(
    "x: number[*#s], y: number[*#s] -> z: number[*#s]",
    cases=[
        Case(x=[1.0, 2.0], y=[3.0, 4.0], z=[4.0, 6.0]),
        Case(x=[[1.0], [2.0]], y=[10.0, 20.0], z=[[11.0, 21.0], [12.0, 22.0]]),
    ],
)
def add(x, y):
    """``z = x + y``."""
    return torch.add(x, y)


add.gradient_programs(
    x=lambda dz, x_shape: fit_to(dz, x_shape),
    y=lambda dz, y_shape: fit_to(dz, y_shape),
)


@operator("x: number[*#s], y: number[*#s] -> z: number[*#s]", cases=[Case(x=[1.0, 2.0], y=[3.0, 5.0], z=[-2.0, -3.0])])
def subtract(x, y):
    """``z = x - y``."""
    return torch.sub(x, y)


subtract.gradient_programs(
    x=lambda dz, x_shape: fit_to(dz, x_shape),
    y=lambda dz, y_shape: fit_to(neg(dz), y_shape),
)


@operator("x: number[*#s], y: number[*#s] -> z: number[*#s]", cases=[Case(x=[1.0, 2.0], y=[3.0, 5.0], z=[3.0, 10.0])])
def multiply(x, y):
    """``z = x * y``, elementwise."""
    return torch.mul(x, y)


multiply.gradient_programs(
    x=lambda y, dz, x_shape: fit_to(multiply(dz, conjugated(y)), x_shape),
    y=lambda x, dz, y_shape: fit_to(multiply(dz, conjugated(x)), y_shape),
)


@operator(
    "x: inexact[*#s], y: inexact[*#s] -> z: inexact[*#s]",
    cases=[Case(x=[1.0, 2.0], y=[4.0, 5.0], z=[0.25, 0.4]), GradCheck(low=0.5, high=2.0)],
)
def divide(x, y):
    """``z = x / y``."""
    return torch.div(x, y)


divide.gradient_programs(
    x=lambda y, dz, x_shape: fit_to(divide(dz, conjugated(y)), x_shape),
    y=lambda y, z, dz, y_shape: fit_to(neg(multiply(dz, conjugated(divide(z, y)))), y_shape),
)


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    checks_values=True,
    cases=[
        Case(x=[7, -7, 7, -7], y=[2, 2, -2, -2], z=[3, -4, -4, 3]),
        Case(x=[7.5, -7.5], y=2.0, z=[3.0, -4.0]),
        Rejects("division of an integer by 0", x=[1, 2], y=[1, 0]),
    ],
)
def floor_divide(x, y):
    """``x / y``, rounded down. Division of an integer by 0 raises KernelError. The gradient is zero wherever it is defined."""
    _require_divisor(y)
    return torch.floor_divide(x, y)


def _require_divisor(y: torch.Tensor) -> None:
    """Raise ValueError if an integer divisor is 0. Division of floats by 0 follows IEEE 754."""
    if not y.is_floating_point() and not y.all():
        raise ValueError("division of an integer by 0")


floor_divide.no_gradient("x", "y")


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    checks_values=True,
    cases=[
        Case(x=[7, -7, 7, -7], y=[2, 2, -2, -2], z=[1, 1, -1, -1]),
        Case(x=[7.5, -7.5], y=2.0, z=[1.5, 0.5]),
        Rejects("division of an integer by 0", x=[1, 2], y=[1, 0]),
    ],
)
def remainder(x, y):
    """``x - floor_divide(x, y) * y``, which has the sign of ``y``. Division of an integer by 0 raises KernelError."""
    _require_divisor(y)
    return torch.remainder(x, y)


remainder.gradient_programs(
    x=lambda dz, x_shape: fit_to(dz, x_shape),
    y=lambda x, y, dz, y_shape: fit_to(neg(multiply(dz, floor_divide(x, y))), y_shape),
)


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    checks_values=True,
    cases=[
        Case(x=[7, -7, 7, -7], y=[2, 2, -2, -2], z=[1, -1, 1, -1]),
        Case(x=[7.5, -7.5], y=2.0, z=[1.5, -1.5]),
        Rejects("division of an integer by 0", x=[1, 2], y=[1, 0]),
    ],
)
def fmod(x, y):
    """The remainder of ``x`` divided by ``y``, with the sign of ``x``. Division of an integer by 0 raises KernelError."""
    _require_divisor(y)
    return torch.fmod(x, y)


fmod.gradient_programs(
    x=lambda dz, x_shape: fit_to(dz, x_shape),
    y=lambda x, y, dz, y_shape: fit_to(neg(multiply(dz, trunc(divide(x, y)))), y_shape),
)


@operator("x: number[*b] -> y: number[*b]", cases=[Case(x=[1.0, -2.0], y=[-1.0, 2.0])])
def neg(x):
    """``y = -x``."""
    return torch.neg(x)


neg.gradient_programs(x=lambda dy: neg(dy))


@operator(
    "x: real[*#s], lower?: real[*#s], upper?: real[*#s] -> y: real[*#s]",
    aliases=("x",),
    cases=[
        Case(x=[-2.0, 0.5, 2.0], lower=-1.0, upper=1.0, y=[-1.0, 0.5, 1.0]),
        Case(x=[-2.0, 0.5], lower=[0.0, 0.0], y=[0.0, 0.5]),
        Case(x=[-2.0, 0.5], upper=[0.0, 0.0], y=[-2.0, 0.0]),
        Case(x=[3.0], y=[3.0]),
        Case(x=[-2, 1, 5], lower=0, upper=3, y=[0, 1, 3]),
        GradCheck(x=[[-0.9, 0.1], [0.8, 0.2]], lower=[[-0.5, -0.5], [-0.5, -0.5]], upper=[[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def clip(x, lower=None, upper=None):
    """``x`` limited to the range from ``lower`` to ``upper``; either may be absent. A bound that applies receives the gradient."""
    return x if lower is None and upper is None else torch.clamp(x, lower, upper)


@clip.gradient("x")
def clip_dx(x, dy, lower=None, upper=None):
    """``dy`` where ``x`` is within the bounds, ends included; else 0."""
    return torch.where(_inside(x, lower, upper), dy, 0.0).sum_to_size(x.shape)


def _inside(x, lower, upper):
    """Return a bool mask: ``x`` is within the bounds, ends included."""
    inside = torch.ones_like(x, dtype=torch.bool)
    if lower is not None:
        inside = inside & (x >= lower)
    if upper is not None:
        inside = inside & (x <= upper)
    return inside


@clip.gradient("lower")
def clip_dlower(x, lower, dy, upper=None):
    """``dy`` where ``x`` is below ``lower`` and ``lower`` is below ``upper``; else 0."""
    return _summed(dy, _below(x, lower, upper), lower)


@clip.gradient("upper")
def clip_dupper(x, upper, dy, lower=None):
    """``dy`` where ``x`` or ``lower`` is above ``upper``; else 0."""
    return _summed(dy, _above(x, upper, lower), upper)


def _below(x, lower, upper):
    return x < lower if upper is None else (x < lower) & (lower < upper)


def _above(x, upper, lower):
    return x > upper if lower is None else (x > upper) | (upper < lower)


def _summed(dy, chosen, like):
    return torch.where(chosen, dy, 0.0).sum_to_size(like.shape)


@clip_dx.gradient("dy")
def clip_dx_ddy(x, ddx, dy_shape, lower=None, upper=None):
    return torch.where(_inside(x, lower, upper), ddx, 0.0).expand(dy_shape).contiguous()


clip_dx.no_gradient("x", "lower", "upper")  # a step function of each: zero wherever it has a derivative


@clip_dlower.gradient("dy")
def clip_dlower_ddy(x, lower, ddlower, dy_shape, upper=None):
    return torch.where(_below(x, lower, upper), ddlower, 0.0).expand(dy_shape).contiguous()


@clip_dupper.gradient("dy")
def clip_dupper_ddy(x, upper, ddupper, dy_shape, lower=None):
    return torch.where(_above(x, upper, lower), ddupper, 0.0).expand(dy_shape).contiguous()


clip_dlower.no_gradient("x", "lower", "upper")
clip_dupper.no_gradient("x", "lower", "upper")


@operator("x: T[*b] -> y: T[*b]", aliases=("x",), cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0])])
def assign(x):
    """``x`` itself, under another name. At the end of the main block, it sets the next value of a persistable variable."""
    return x


assign.gradient_programs(x=lambda dy: dy)


@operator("x: T[...s] -> y: T[...s]", aliases=("x",), cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0]), GradCheck(x=(2, 3))])
def optimization_barrier(x):
    """Identity that passes do not look through: an expression of the result is never merged with the same expression of ``x``.

    Recomputation inserts it before recomputed values. It costs no memory and no time.
    """
    return x


optimization_barrier.gradient_programs(x=lambda dy: dy)


@operator(
    "*xs: inexact[...~s] -> y: inexact[...s]",
    aliases=("xs",),
    cases=[Case(xs=([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]), y=[9.0, 12.0]), Case(xs=([1.0],), y=[1.0])],
)
def sum_(xs):
    """The sum of one or more tensors of one shape, added in order. Uneven stacks of loops are added step by step."""
    return xs[0] if len(xs) == 1 else add_up(xs)


def add_up(xs, out=None):
    """Add two or more tensors, into ``out`` or new memory; or uneven stacks."""
    total = torch.add(xs[0], xs[1], out=out) if isinstance(xs[0], torch.Tensor) else add_stacks(xs[0], xs[1])
    for x in xs[2:]:
        total = total.add_(x) if isinstance(total, torch.Tensor) else add_stacks(total, x)
    return total


sum_.gradient_programs(xs=lambda xs_shape, dy: [dy for _ in xs_shape])

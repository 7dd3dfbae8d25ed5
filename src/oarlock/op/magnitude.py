"""Magnitude, sign and direction of numbers, elementwise."""

import math

import torch

from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.complex_parts import complex_, conj, imag, real
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.reduction import fit_to
from oarlock.op.trigonometry import cos, sin
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import number_like, square
from oarlock.registry import Case, GradCheck

__all__ = ["abs_", "angle", "polar", "sgn", "sign"]


@operator(
    "x: number[*b] -> y: number.real[*b]",
    cases=[Case(x=[-1.5, 2.0], y=[1.5, 2.0]), Case(x=[3 - 4j, 0j], y=[5.0, 0.0]), GradCheck(low=0.5, high=2.0)],
)
def abs_(x):
    """``|x|``, a real number. Its gradient at 0 is 0."""
    return torch.abs(x)


@abs_.gradient("x")
def abs_dx(x, dy):
    return torch.mul(dy, torch.sign(x))


abs_dx.no_gradient("x")  # a step function of x
abs_.complex_gradient_programs(x=lambda x, dy: multiply(cast(dy, dtype=x.dtype), sgn(x)))


@operator("x: real[*b] -> y: real[*b]", cases=[Case(x=[-1.5, 0.0, 2.0], y=[-1.0, 0.0, 1.0]), Case(x=[-3, 0], y=[-1, 0])])
def sign(x):
    """-1, 0 or 1 for ``x`` below, at or above 0; 0 for NaN."""
    return torch.sign(x)


sign.no_gradient("x")  # zero wherever it is defined


@operator("x: complex[*b] -> y: complex[*b]", sensitive_to="layout", cases=[Case(x=[3 - 4j, 0j], y=[0.6 - 0.8j, 0j])])
def sgn(x):
    """``x / |x|``, the direction of a complex number; 0 at 0, with a zero gradient. `sign` is for real numbers."""
    return torch.sgn(x)


def _without_zeros(x):
    """Return a mask of zeros, which have no direction, and ``x`` with 1 in their place, to divide by."""
    nothing = equal(x, number_like(0.0, x))
    return nothing, where(nothing, number_like(1.0, x), x)


def sgn_dx(x, y, dy):
    """The component of ``dy`` perpendicular to the direction ``y``, divided by ``|x|``."""
    nothing, some = _without_zeros(x)
    along = multiply(y, cast(real(multiply(dy, conj(y))), dtype=y.dtype))
    return where(nothing, number_like(0.0, x), divide(subtract(dy, along), cast(abs_(some), dtype=x.dtype)))


sgn.gradient_programs(x=sgn_dx)


@operator(
    "x: complex[*b] -> y: complex.real[*b]",
    sensitive_to="layout",
    cases=[Case(x=[1j, -2 + 0j, 1 - 1j, 0j], y=[math.pi / 2, math.pi, -math.pi / 4, 0.0])],
)
def angle(x):
    """The angle of a complex number, from ``-pi`` to ``pi``; 0 at 0, with a zero gradient."""
    return torch.angle(x)


def angle_dx(x, dy):
    nothing, some = _without_zeros(x)
    a, b = real(some), imag(some)
    by = divide(dy, add(square(a), square(b)))
    return where(nothing, number_like(0.0, x), complex_(neg(multiply(by, b)), multiply(by, a)))


angle.gradient_programs(x=angle_dx)


@operator(
    "size: float[*#s], angle: float[*#s] -> z: float.complex[*#s]",
    cases=[Case(size=[1.0, 2.0], angle=[math.pi / 2, math.pi], z=[1j, -2 + 0j]), GradCheck(low=0.1, high=2.0)],
)
def polar(size, angle):
    """The complex number ``size * exp(1j * angle)``. A negative ``size`` gives the opposite direction."""
    return torch.polar(*torch.broadcast_tensors(size, angle))


def _across_and_along(angle, dz):
    """Return the components of ``dz`` perpendicular to the direction of an angle, and along it."""
    a, b, x, y = cos(angle), sin(angle), real(dz), imag(dz)
    return subtract(multiply(y, a), multiply(x, b)), add(multiply(x, a), multiply(y, b))


polar.gradient_programs(
    size=lambda angle, dz, size_shape: fit_to(_across_and_along(angle, dz)[1], size_shape),
    angle=lambda size, angle, dz, angle_shape: fit_to(multiply(size, _across_and_along(angle, dz)[0]), angle_shape),
)


polar.declare_edges(
    **dict.fromkeys(
        ("negative", "zero", "infinite", "nan", "denormal"),
        "the derivative of size * exp(1j * angle); PyTorch treats the size as an absolute value: other signs below 0",
    )
)

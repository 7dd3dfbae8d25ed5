"""Elementwise functions of two numbers, with broadcasting: hypotenuse, signs, sums in log space, products with logarithms."""

import math

import torch

from oarlock.op.activation import sigmoid
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater_equal
from oarlock.op.elementwise import divide, multiply, subtract
from oarlock.op.logical import logical_and, logical_not, logical_or
from oarlock.op.magnitude import sign
from oarlock.op.reduction import fit_to
from oarlock.op.rounding import isnan
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import log, log1p, number_like
from oarlock.registry import Case, GradCheck

__all__ = ["copysign", "fmax", "fmin", "gcd", "heaviside", "hypot", "lcm", "logaddexp", "logaddexp2", "nextafter", "xlog1py", "xlogy"]


@operator(
    "x: float[*#s], y: float[*#s] -> z: float[*#s]",
    cases=[Case(x=[3.0, 1e300], y=[4.0, 0.0], z=[5.0, 1e300]), GradCheck(low=0.5, high=2.0)],
)
def hypot(x, y):
    """``sqrt(x**2 + y**2)``, which overflows only if the result does."""
    return torch.hypot(x, y)


hypot.gradient_programs(
    x=lambda x, z, dz, x_shape: fit_to(multiply(dz, divide(x, z)), x_shape),
    y=lambda y, z, dz, y_shape: fit_to(multiply(dz, divide(y, z)), y_shape),
)


hypot.declare_edges(denormal="the ratio of x and z is rounded before dz is multiplied; PyTorch multiplies first")


@operator(
    "x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[1.0, -2.0], y=[-0.0, 3.0], z=[-1.0, 2.0]), GradCheck(low=0.5, high=2.0)]
)
def copysign(x, y):
    """``|x|`` with the sign of ``y``, including the sign of -0."""
    return torch.copysign(x, y)


@copysign.gradient_program("x")
def copysign_dx(x, z, dz, x_shape):
    """``dz``, negated if the sign of ``x`` was changed; 0 at 0, NaN for NaN."""
    return fit_to(multiply(dz, where(isnan(x), x, multiply(sign(x), sign(z)))), x_shape)


copysign.no_gradient("y")  # zero wherever it is defined
copysign.declare_edges(infinite="dz or -dz by the signs; PyTorch divides z by x, which gives NaN")


@operator(
    "x: float[*#s], y: float[*#s] -> z: float[*#s]",
    cases=[Case(x=[0.0, 1000.0], y=[0.0, 1000.0], z=[math.log(2.0), 1000.0 + math.log(2.0)])],
)
def logaddexp(x, y):
    """``log(exp(x) + exp(y))``, computed stably."""
    return torch.logaddexp(x, y)


logaddexp.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(multiply(dz, sigmoid(subtract(x, y))), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(multiply(dz, sigmoid(subtract(y, x))), y_shape),
)


@operator("x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[0.0, 1000.0], y=[0.0, 1000.0], z=[1.0, 1001.0])])
def logaddexp2(x, y):
    """``log2(2**x + 2**y)``, computed stably."""
    return torch.logaddexp2(x, y)


def _share(x, y):
    """Return the share of ``2**x`` in the sum."""
    return sigmoid(multiply(subtract(x, y), number_like(math.log(2.0), x)))


logaddexp2.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(multiply(dz, _share(x, y)), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(multiply(dz, _share(y, x)), y_shape),
)


@operator(
    "x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[2.0, 0.0], y=[math.e, 0.0], z=[2.0, 0.0]), GradCheck(low=0.5, high=2.0)]
)
def xlogy(x, y):
    """``x log(y)``; 0 if ``x`` is 0, unless ``y`` is NaN."""
    return torch.xlogy(x, y)


def _log_or_zero(x, y, least, logarithm):
    """Return ``logarithm(y)``, but 0 if ``x`` is 0 and ``y`` is at most ``least``, at which the logarithm is infinite."""
    still = logical_and(equal(x, number_like(0.0, x)), greater_equal(number_like(least, y), y))
    return where(still, number_like(0.0, y), logarithm(where(still, number_like(1.0, y), y)))


xlogy.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(multiply(dz, _log_or_zero(x, y, 0.0, log)), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(multiply(dz, divide(x, y)), y_shape),
)


@operator(
    "x: float[*#s], y: float[*#s] -> z: float[*#s]",
    cases=[Case(x=[2.0, 0.0], y=[math.e - 1, -1.0], z=[2.0, 0.0]), GradCheck(low=0.5, high=2.0)],
)
def xlog1py(x, y):
    """``x log(1 + y)``; 0 if ``x`` is 0, unless ``y`` is NaN."""
    return torch.special.xlog1py(x, y)


xlog1py.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(multiply(dz, _log_or_zero(x, y, -1.0, log1p)), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(multiply(dz, divide(x, y + 1.0)), y_shape),
)


@operator("x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[1.0, 5.0], y=[3.0, 4.0], z=[3.0, 5.0])])
def fmax(x, y):
    """The larger of two numbers; if one is NaN, the other. If they are equal, ``x`` receives the whole gradient."""
    return torch.fmax(x, y)


@operator("x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[1.0, 5.0], y=[3.0, 4.0], z=[1.0, 4.0])])
def fmin(x, y):
    """The smaller of two numbers; if one is NaN, the other. If they are equal, ``x`` receives the whole gradient."""
    return torch.fmin(x, y)


def _masked(chosen, dz, like):
    """Return ``dz`` where chosen, else 0, summed to the shape of ``like``."""
    return fit_to(where(chosen, dz, number_like(0.0, dz)), like)


fmax.gradient_programs(
    x=lambda x, y, dz, x_shape: _masked(logical_or(greater_equal(x, y), isnan(y)), dz, x_shape),
    y=lambda x, y, dz, y_shape: _masked(logical_not(logical_or(greater_equal(x, y), isnan(y))), dz, y_shape),
)
fmin.gradient_programs(
    x=lambda x, y, dz, x_shape: _masked(logical_or(greater_equal(y, x), isnan(y)), dz, x_shape),
    y=lambda x, y, dz, y_shape: _masked(logical_not(logical_or(greater_equal(y, x), isnan(y))), dz, y_shape),
)


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    cases=[Case(x=[-1.0, 0.0, 2.0], y=0.5, z=[0.0, 0.5, 1.0]), Case(x=[-3, 0], y=7, z=[0, 7])],
)
def heaviside(x, y):
    """The step function: 0 below 0, ``y`` at 0, 1 above. It has no gradient."""
    return torch.heaviside(x, y)


heaviside.no_gradient("x", "y")


@operator("x: float[*#s], y: float[*#s] -> z: float[*#s]", cases=[Case(x=[0.0, 1.0], y=[0.0, 2.0], z=[0.0, 1.0])])
def nextafter(x, y):
    """The next representable number from ``x`` towards ``y``. Its derivative with respect to ``x`` is 1."""
    return torch.nextafter(x, y)


nextafter.gradient_programs(x=lambda dz, x_shape: fit_to(dz, x_shape))
nextafter.no_gradient("y")  # zero wherever it is defined
nextafter.declare_edges(equal="if x equals y, z is x, with the derivative 1; PyTorch's is 0 for both")


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, 0, -4], y=[18, 5, 6], z=[6, 5, 2])])
def gcd(x, y):
    """The greatest common divisor, never negative."""
    return torch.gcd(x, y)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[4, 0, -4], y=[6, 5, 6], z=[12, 0, 12])])
def lcm(x, y):
    """The least common multiple, never negative."""
    return torch.lcm(x, y)

"""Elementwise powers, with broadcasting. Fixed powers that have an operator of their own are in `op/unary.py`."""

import torch

from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater_equal
from oarlock.op.complex_parts import conjugated, imag, real
from oarlock.op.elementwise import multiply, subtract
from oarlock.op.logical import logical_and
from oarlock.op.reduction import fit_to
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import log, number_like
from oarlock.registry import Case, GradCheck

__all__ = ["power"]


@operator(
    "x: number[*#s], y: number[*#s] -> z: number[*#s]",
    sensitive_to="layout",
    cases=[
        Case(x=[2.0, 3.0, 4.0, 0.5], y=[-1.0, 2.0, 0.5, 0.0], z=[0.5, 9.0, 2.0, 1.0]),
        Case(x=[2, -3, 0, 2, -1], y=[10, 3, 0, -1, -3], z=[1024, -27, 1, 0, -1]),
        GradCheck(low=0.5, high=2.0),
        GradCheck(x=(40, 5), y=(40, 5), low=0.5, high=2.0),
        GradCheck(x=[0.5, 2.0, 3.0], y=[[2.0], [1.0], [-1.0]]),
    ],
)
def power(x, y):
    """``x`` to the power ``y``. For integers and a negative power, the result is truncated, and 0 for a base of 0."""
    return torch.pow(x, y)


def _power_below(x, y):
    """Return ``x`` to the power ``y - 1``, or 1 if ``y`` is 0, so that the product with ``y`` is 0."""
    zero = number_like(0.0, y)
    return power(x, where(equal(y, zero), zero, subtract(y, number_like(1.0, y))))


def _is_not_negative(y):
    """Return whether a power is a real number and not negative."""
    if not y.dtype.is_complex:
        return greater_equal(y, number_like(0.0, y))
    a, b = real(y), imag(y)
    return logical_and(equal(b, number_like(0.0, b)), greater_equal(a, number_like(0.0, a)))


def _log_of_base(x, y):
    """Return ``log(x)``, or 0 if ``x`` is 0 and ``y`` is not negative: the power then does not depend on ``y``."""
    zero = number_like(0.0, x)
    still = logical_and(equal(x, zero), _is_not_negative(y))
    return log(where(still, number_like(1.0, x), x))


power.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(multiply(dz, conjugated(multiply(y, _power_below(x, y)))), x_shape),
    y=lambda x, y, z, dz, y_shape: fit_to(multiply(dz, conjugated(multiply(z, _log_of_base(x, y)))), y_shape),
)

"""Piecewise linear activations, or nearly so: hardtanh, hardsigmoid, hardswish, leaky_relu."""

import torch

from oarlock.errors import ArgumentError
from oarlock.op.choice import where
from oarlock.op.comparison import less
from oarlock.op.elementwise import multiply
from oarlock.op.magnitude import abs_
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import number_like
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["hardsigmoid", "hardswish", "hardtanh", "leaky_relu"]

aten = torch.ops.aten


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[
        Case(x=[-2.0, 0.5, 2.0], y=[-1.0, 0.5, 1.0]),
        Case(x=[-2.0, 0.5, 7.0], lower=0.0, upper=6.0, y=[0.0, 0.5, 6.0]),
        GradCheck(lower=-0.25, upper=0.5),
        Rejects("lower must be at most upper, not 2.0 and 1.0", x=(2,), lower=2.0),
    ],
)
def hardtanh(x, *, lower: float = -1.0, upper: float = 1.0):
    """``x`` clipped to ``lower`` and ``upper``. Unlike in `clip`, the gradient at the bounds themselves is 0."""
    return aten.hardtanh.default(x, min_val=lower, max_val=upper)


@hardtanh.check_shapes
def require_order(x, *, lower, upper):
    if not lower <= upper:
        raise ArgumentError(f"lower must be at most upper, not {lower} and {upper}")


@hardtanh.gradient("x")
def hardtanh_dx(x, dy, *, lower, upper):
    return aten.hardtanh_backward.default(dy, x, min_val=lower, max_val=upper)


hardtanh_dx.no_gradient("x")  # a step function of x


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[-4.0, 0.0, 1.5, 4.0], y=[0.0, 0.5, 0.75, 1.0]), GradCheck(low=-4.0, high=4.0)])
def hardsigmoid(x):
    """``x / 6 + 1 / 2``, clipped to 0 and 1 (Howard et al., 2019)."""
    return _hardsigmoid_of_float64(x) if _is_float64_on_gpu(x) else aten.hardsigmoid.default(x)


def _is_float64_on_gpu(x: torch.Tensor) -> bool:
    """Return whether PyTorch's kernel would multiply by 1/6 in float32."""
    return x.is_cuda and x.dtype is torch.float64


def _hardsigmoid_of_float64(x: torch.Tensor) -> torch.Tensor:
    return ((x + 3.0) / 6.0).clamp(0.0, 1.0)


@hardsigmoid.gradient("x")
def hardsigmoid_dx(x, dy):
    return aten.hardsigmoid_backward.default(dy, x)


hardsigmoid_dx.no_gradient("x")  # a step function of x


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[-4.0, 0.0, 1.5, 4.0], y=[0.0, 0.0, 1.125, 4.0]), GradCheck(low=-4.0, high=4.0)])
def hardswish(x):
    """``x * hardsigmoid(x)`` (Howard et al., 2019)."""
    return x * _hardsigmoid_of_float64(x) if _is_float64_on_gpu(x) else aten.hardswish.default(x)


@hardswish.gradient("x")
def hardswish_dx(x, dy):
    return aten.hardswish_backward.default(dy, x)


@hardswish_dx.gradient_program("x")
def hardswish_dx_dx(x, dy, ddx):
    """A third of ``dy * ddx`` between -3 and 3, else 0."""
    third, zero = number_like(1.0 / 3.0, x), number_like(0.0, x)
    return multiply(multiply(dy, ddx), where(less(abs_(x), number_like(3.0, x)), third, zero))


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[Case(x=[-2.0, 2.0], y=[-0.02, 2.0]), Case(x=[-2.0, 2.0], slope=0.5, y=[-1.0, 2.0]), GradCheck(), GradCheck(slope=0.5)],
)
def leaky_relu(x, *, slope: float = 0.01):
    """``x`` if it is above 0, else ``slope * x`` (Maas, Hannun and Ng, 2013)."""
    return aten.leaky_relu.default(x, negative_slope=slope)


@leaky_relu.gradient("x")
def leaky_relu_dx(x, dy, *, slope):
    return aten.leaky_relu_backward.default(dy, x, slope, False)


leaky_relu_dx.no_gradient("x")  # a step function of x

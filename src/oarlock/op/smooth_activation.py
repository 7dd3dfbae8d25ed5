"""Smooth activations: silu, mish, elu, softplus, log_sigmoid. `op/activation.py` has the most common ones."""

import torch

from oarlock.op.activation import sigmoid, tanh
from oarlock.op.choice import where
from oarlock.op.comparison import greater, less
from oarlock.op.elementwise import multiply, neg
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp, number_like
from oarlock.registry import Case, GradCheck

__all__ = ["elu", "log_sigmoid", "mish", "silu", "softplus"]

aten = torch.ops.aten


@operator("x: float[*b] -> y: float[*b]", sensitive_to="layout", cases=[Case(x=[0.0, 1.0], y=[0.0, 0.7310585786300049])])
def silu(x):
    """``y = x * sigmoid(x)``, also called swish (Elfwing, Uchibe and Doya, 2017)."""
    return aten.silu.default(x)


@silu.gradient("x", sensitive_to="layout")
def silu_dx(x, dy):
    return aten.silu_backward.default(dy, x)


@silu_dx.gradient_program("x")
def silu_dx_dx(x, dy, ddx):
    """``dy * ddx`` times the second derivative, ``s (1 - s) (2 + x (1 - 2 s))`` with the sigmoid ``s``."""
    s = sigmoid(x)
    return dy * ddx * (s * (1.0 - s) * (x * (1.0 - 2.0 * s) + 2.0))


@operator("x: float[*b] -> y: float[*b]", sensitive_to="layout", cases=[Case(x=[0.0, 1.0], y=[0.0, 0.8650983882673103])])
def mish(x):
    """``y = x * tanh(softplus(x))`` (Misra, 2019)."""
    return aten.mish.default(x)


@mish.gradient("x", sensitive_to="layout")
def mish_dx(x, dy):
    return aten.mish_backward.default(dy, x)


@mish_dx.gradient_program("x")
def mish_dx_dx(x, dy, ddx):
    """``dy * ddx`` times the second derivative, ``(1 - t t) (2 s + x (s (1 - s) - 2 t s s))``, with the tanh ``t``
    and the sigmoid ``s``.
    """
    s, t = sigmoid(x), tanh(softplus(x))
    return dy * ddx * ((1.0 - t * t) * (2.0 * s + x * (s * (1.0 - s) - 2.0 * t * s * s)))


@operator(
    "x: float[*b] -> y: float[*b]",
    sensitive_to="layout",
    cases=[
        Case(x=[2.0, -1.0], y=[2.0, -0.6321205588285577]),
        Case(x=[2.0, -1.0], alpha=2.0, scale=3.0, input_scale=0.5, y=[6.0, -2.3608160417242]),
        GradCheck(),
        GradCheck(alpha=0.5, scale=2.0, input_scale=1.5),
    ],
)
def elu(x, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0):
    """``scale * x`` if ``x`` is above 0, else ``scale * alpha * (exp(input_scale * x) - 1)`` (Clevert, Unterthiner
    and Hochreiter, 2015).
    """
    return aten.elu.default(x, alpha=alpha, scale=scale, input_scale=input_scale)


@elu.gradient("x", sensitive_to="layout")
def elu_dx(x, dy, *, alpha, scale, input_scale):
    dx = aten.elu_backward.default(dy, alpha, scale, input_scale, False, x)
    return dx  # by name, so that no variant is derived: PyTorch rounds differently when it writes to strided memory


@elu_dx.gradient_program("x")
def elu_dx_dx(x, dy, ddx, *, alpha, scale, input_scale):
    zero, bend = number_like(0.0, x), number_like(alpha * scale * input_scale * input_scale, x)
    below = multiply(exp(multiply(x, number_like(input_scale, x))), bend)
    return multiply(multiply(dy, ddx), where(less(x, zero), below, zero))


@operator(
    "x: float[*b] -> y: float[*b]",
    sensitive_to="layout",
    cases=[
        Case(x=[0.0, 1.0, 30.0], y=[0.6931471805599453, 1.3132616875182228, 30.0]),
        Case(x=[0.0, 1.5], beta=2.0, threshold=2.0, y=[0.34657359027997264, 1.5]),
        GradCheck(),
        GradCheck(beta=2.0, threshold=1.0),
    ],
)
def softplus(x, *, beta: float = 1.0, threshold: float = 20.0):
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself if ``beta * x`` is above the threshold."""
    return aten.softplus.default(x, beta=beta, threshold=threshold)


@softplus.gradient("x", sensitive_to="layout")
def softplus_dx(x, dy, *, beta, threshold):
    dx = aten.softplus_backward.default(dy, x, beta, threshold)
    return dx  # by name, as above


@softplus_dx.gradient_program("x")
def softplus_dx_dx(x, dy, ddx, *, beta, threshold):
    scaled = multiply(x, number_like(beta, x))
    s = sigmoid(scaled)
    return dy * ddx * where(greater(scaled, number_like(threshold, x)), number_like(0.0, x), s * (1.0 - s) * beta)


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, -1.0], y=[-0.6931471805599453, -1.3132616875182228])])
def log_sigmoid(x):
    """``log(sigmoid(x))``, computed stably."""
    return torch.nn.functional.logsigmoid(x)


log_sigmoid.gradient_programs(x=lambda x, dy: multiply(dy, sigmoid(neg(x))))

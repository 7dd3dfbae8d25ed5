"""Activations."""

import math

import torch

from oarlock.backend.torch.private import log_softmax_backward, softmax_backward
from oarlock.ir.shape_rules import require_at_most, require_axis
from oarlock.op.complex_parts import conjugated
from oarlock.op.creation import full
from oarlock.op.elementwise import multiply, neg, subtract
from oarlock.op.reduction import reduce_sum
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.memory_format import in_format_of

__all__ = ["causal_softmax", "gelu", "log_softmax", "relu", "sigmoid", "softmax", "tanh"]

aten = torch.ops.aten


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[-1.0, 0.0, 2.0], y=[0.0, 0.0, 2.0])])
def relu(x):
    """Clamp negatives to zero: ``y = max(x, 0)``."""
    return torch.relu(x)


@relu.gradient("x")
def relu_dx(y, dy):
    """``dx = dy``, but 0 where ``y <= 0``. Needs only the output, so ``x`` may be freed."""
    return aten.threshold_backward.default(in_format_of(dy, y), y, 0)


relu_dx.no_gradient("y")  # a step function of y: zero wherever it has a derivative


@operator("x: inexact[*b] -> y: inexact[*b]", sensitive_to="layout", cases=[Case(x=[0.0, 0.5], y=[0.5, 0.6224593312018546])])
def sigmoid(x):
    """The logistic function, ``y = 1 / (1 + exp(-x))``."""
    return torch.sigmoid(x)


@sigmoid.gradient("x")
def sigmoid_dx(y, dy):
    """``dx = dy * conj(y * (1 - y))``."""
    return aten.sigmoid_backward.default(dy, y)


@sigmoid_dx.gradient_program("y")
def sigmoid_dx_dy(y, dy, ddx):
    one, two = (full(shape=(), value=value, dtype=y.dtype) for value in (1.0, 2.0))
    return conjugated(ddx) * dy * conjugated(one - two * y)


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, 0.5], y=[0.0, 0.46211715726000973])])
def tanh(x):
    """The hyperbolic tangent."""
    return torch.tanh(x)


@tanh.gradient("x")
def tanh_dx(y, dy):
    """``dx = dy * conj(1 - y**2)``."""
    return aten.tanh_backward.default(dy, y)


tanh_dx.gradient_programs(y=lambda y, dy, ddx: multiply(conjugated(ddx) * dy * conjugated(y), full(shape=(), value=-2.0, dtype=y.dtype)))


@operator(
    "x: float[*b] -> y: float[*b]",
    sensitive_to="layout",
    cases=[
        Case(x=[0.0, 1.0, -2.0], y=[0.0, 0.841344746068543, -0.045500263896358417]),
        Case(x=[0.0, 1.0, -2.0], approximate=True, y=[0.0, 0.8411919906082768, -0.04540230591222498]),
        GradCheck(),
        GradCheck(approximate=True),
    ],
)
def gelu(x, *, approximate: bool = False):
    """Gaussian error linear unit: ``x`` times the normal distribution function of ``x`` (Hendrycks and Gimpel, 2016).

    With ``approximate``, its tanh approximation ``y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2``.
    """
    return aten.gelu.default(x, approximate=_form(approximate))


def _form(approximate: bool) -> str:
    return "tanh" if approximate else "none"


@gelu.gradient("x", sensitive_to="layout")
def gelu_dx(x, dy, *, approximate):
    return aten.gelu_backward.default(dy, x, approximate=_form(approximate))


@gelu_dx.gradient("x")
def gelu_dx_dx(x, dy, ddx, *, approximate):
    """``dy * ddx`` times the second derivative."""
    if not approximate:
        return dy * ddx * (2 - x * x) * torch.exp(x * x / -2) / math.sqrt(2 * math.pi)
    scale = math.sqrt(2 / math.pi)
    t = torch.tanh(scale * (x + 0.044715 * x * x * x))
    slope, bend = scale * (1 + 3 * 0.044715 * x * x), scale * 6 * 0.044715 * x
    return dy * ddx * (1 - t * t) * (slope + x * (bend / 2 - t * slope * slope))


@operator(
    "x: float[...s] -> y: float[...s]",
    axis_attribute="axis=-1",
    cases=[
        Case(x=[[0.0, 0.0], [0.0, 1.0986122886681098]], y=[[0.5, 0.5], [0.25, 0.75]]),
        Case(x=[[0.0, 0.0], [0.0, 1.0986122886681098]], axis=0, y=[[0.5, 0.25], [0.5, 0.75]]),
        GradCheck(x=(2, 3)),
        GradCheck(x=(0, 3)),
        GradCheck(x=(3, 2, 2), axis=1),
        GradCheck(x=(3, 2), axis=-2),
    ],
)
def softmax(x, *, axis: int | None = None):
    """``y = exp(x) / sum(exp(x))`` along ``axis`` (default: the last), computed stably."""
    return torch.softmax(x, dim=-1 if axis is None else axis)


@softmax.check_shapes
def require_along(x, *, axis=None):
    require_axis(x.shape, last_unless(axis))


def last_unless(axis: int | None) -> int:
    """Return ``axis``, or -1 (the last axis) if it is None."""
    return -1 if axis is None else axis


@softmax.gradient("x", axis_attribute="axis=-1")
def softmax_dx(y, dy, *, axis=None):
    """``dx = y * (dy - sum(dy * y))``, the sum along the axis."""
    return softmax_backward(dy, y, last_unless(axis), y.dtype)


softmax_dx.gradient_programs(dy=lambda y, ddx, *, axis=None: softmax_dx(y, ddx, axis=axis))


@softmax_dx.gradient_program("y")
def softmax_dx_dy(y, dy, ddx, *, axis=None):
    along_dy, along_ddx = (_along(multiply(each, y), axis) for each in (dy, ddx))
    return subtract(multiply(ddx, subtract(dy, along_dy)), multiply(dy, along_ddx))


@operator(
    "x: float[...s] -> y: float[...s]",
    axis_attribute="axis=-1",
    cases=[
        Case(x=[[0.0, 1.0986122886681098], [-1e4, 0.0]], y=[[-1.3862943611198906, -0.2876820724517809], [-1e4, 0.0]]),
        Case(x=[[0.0, -1e4], [1.0986122886681098, 0.0]], axis=0, y=[[-1.3862943611198906, -1e4], [-0.2876820724517809, 0.0]]),
        GradCheck(x=(2, 3)),
        GradCheck(x=(0, 3)),
        GradCheck(x=(3, 2, 2), axis=1),
        GradCheck(x=(3, 2), axis=-2),
    ],
)
def log_softmax(x, *, axis: int | None = None):
    """``log(softmax(x))`` along ``axis`` (default: the last), finite even if the softmax rounds to 0."""
    return torch.log_softmax(x, dim=-1 if axis is None else axis)


log_softmax.check_shapes(require_along)


@log_softmax.gradient("x", axis_attribute="axis=-1")
def log_softmax_dx(y, dy, *, axis=None):
    """``dx = dy - exp(y) * sum(dy)``, the sum along the axis."""
    return log_softmax_backward(dy, y, last_unless(axis), y.dtype)


def _along(x, axis: int | None):
    return reduce_sum(x, axis=last_unless(axis), keepdim=True)


log_softmax_dx.gradient_programs(
    dy=lambda y, ddx, *, axis=None: subtract(ddx, _along(multiply(exp(y), ddx), axis)),
    y=lambda y, dy, ddx, *, axis=None: neg(multiply(multiply(exp(y), ddx), _along(dy, axis))),
)


@operator(
    "x: float[*b t s] -> y: float[*b t s]",
    checks_values=True,
    cases=[
        Case(x=[[0.0, 9.0], [0.0, 1.0986122886681098]], y=[[1.0, 0.0], [0.25, 0.75]]),
        Case(x=[[[0.0, 0.0, 9.0], [1.0, 1.0, 1.0]], [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]],
             y=[[[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]], [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]]),
        GradCheck(x=(2, 3, 4)),
        GradCheck(x=(3, 3)),
        Rejects("3 rows are more than 2 columns", x=(3, 2)),
    ],
)  # fmt: skip
def causal_softmax(x):
    """Softmax over the last axis with a causal mask: row ``i`` of ``t`` sees columns up to ``i + s - t`` of ``s``; the others are 0."""
    require_seen(x)
    t, s = x.shape[-2:]
    hidden = torch.ones(t, s, dtype=torch.bool, device=x.device).triu_(s - t + 1)
    return torch.softmax(x.masked_fill(hidden, -math.inf), dim=-1)


@causal_softmax.check_shapes
def require_seen(x):
    t, s = x.shape[-2:]
    require_at_most(t, s, "{} rows are more than {} columns, so the first rows would see no column", t, s)


causal_softmax.gradient_programs(x=lambda y, dy: softmax_dx(y, dy))


causal_softmax.declare_edges(
    **dict.fromkeys(("infinite", "nan"), "NaN also at hidden columns of a row whose probabilities are NaN; PyTorch's is 0 there")
)

"""Activations, softmax, and gated units."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, as_dtype, axis_of, like, rank_of, refuse, reshaped, shape_of
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.var import Var

_UNARY = ("hardsigmoid", "hardswish", "log_sigmoid", "mish", "relu6", "selu", "silu")


def _unary_rule(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self)

    return apply


for _name in _UNARY:
    rule(f"aten.{_name}.default")(_unary_rule(_name))


@rule("aten.relu.default")
def relu(self: Var):
    return op.relu(self) if self.dtype.is_floating else op.maximum(self, like(0, self))


@rule("aten.hardtanh.default")
def hardtanh(self: Var, min_val: Number = -1, max_val: Number = 1):
    """Clip to bounds. Unlike `clamp`, the gradient at the bounds is 0, not 1."""
    return op.hardtanh(self, lower=float(min_val), upper=float(max_val))


@rule("aten.gelu.default")
def gelu(self: Var, approximate: str = "none"):
    return op.gelu(self, approximate=approximate == "tanh")


@rule("aten.leaky_relu.default")
def leaky_relu(self: Var, negative_slope: Number = 0.01):
    return op.leaky_relu(self, slope=float(negative_slope))


@rule("aten.elu.default")
def elu(self: Var, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1):
    return op.elu(self, alpha=float(alpha), scale=float(scale), input_scale=float(input_scale))


@rule("aten.celu.default")
def celu(self: Var, alpha: Number = 1.0):
    return op.celu(self, alpha=float(alpha))


@rule("aten.softplus.default")
def softplus(self: Var, beta: Number = 1, threshold: Number = 20):
    return op.softplus(self, beta=float(beta), threshold=float(threshold))


@rule("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(self: Var):
    y = op.log_sigmoid(self)
    return y, op.full_like(y, value=0.0, dtype=y.dtype)  # PyTorch uses this buffer only for its own gradient


@rule("aten.hardshrink.default")
def hardshrink(self: Var, lambd: Number = 0.5):
    return op.hardshrink(self, bound=float(lambd))


@rule("aten.softshrink.default")
def softshrink(self: Var, lambd: Number = 0.5):
    return op.softshrink(self, bound=float(lambd))


@rule("aten.threshold.default")
def threshold(self: Var, threshold: Number, value: Number):
    return op.threshold(self, threshold=float(threshold), value=float(value))


@rule("aten._prelu_kernel.default")
def prelu_kernel(self: Var, weight: Var):
    """Multiply negative elements by slopes. The slopes already have axes that broadcast."""
    return op.where(op.greater(self, like(0.0, self)), self, op.multiply(weight, self))


@rule("aten.prelu.default")
def prelu(self: Var, weight: Var):
    return op.prelu(self, reshaped(weight, []) if rank_of(weight) and rank_of(self) < 2 else weight)


@rule("aten.rrelu.default")
def rrelu(self: Var, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: bool = False):
    refuse(training, "random slopes are not supported; export the module in evaluation mode")
    return op.leaky_relu(self, slope=(float(lower) + float(upper)) / 2)


@rule("aten.glu.default")
def glu(self: Var, dim: int = -1):
    axis = axis_of(self, dim)
    whole = shape_of(self)[axis]
    refuse(not isinstance(whole, int), f"the size {whole} is not constant, so it cannot be halved")
    return op.glu(self, axis=axis)


@rule("aten.softmax.int", "aten._softmax.default", "aten._safe_softmax.default")
def softmax(self: Var, dim: int, dtype: object = None, half_to_float: bool = False):
    refuse(half_to_float, "half_to_float=True")
    return op.softmax(as_dtype(self, dtype), axis=axis_of(self, dim)) if rank_of(self) else op.full_like(self, value=1.0, dtype=self.dtype)


@rule("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(self: Var, dim: int, dtype: object = None, half_to_float: bool = False):
    refuse(half_to_float, "half_to_float=True")
    x = as_dtype(self, dtype)
    return op.log_softmax(x, axis=axis_of(self, dim)) if rank_of(self) else op.full_like(x, value=0.0, dtype=x.dtype)

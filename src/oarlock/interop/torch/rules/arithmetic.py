"""Elementwise arithmetic on two tensors, or on a tensor and a number."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, as_dtype, as_floating, broadcasted, is_one, like
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.registry.signature import TensorType


def _multiply(x: Var | Number, factor: Number | Var) -> Var | Number:
    if is_one(factor):
        return x
    return op.multiply(x, factor) if isinstance(x, Var) or isinstance(factor, Var) else x * factor


@rule("aten.add.Tensor", "aten.add.Scalar", promote=("self", "other"))
def add(self: Var | Number, other: Var | Number, alpha: Number = 1):
    x, y = _as_variables(self, _multiply(other, alpha))
    return op.logical_or(x, y) if x.dtype is DType.BOOL else op.add(x, y)


@rule("aten.sub.Tensor", "aten.sub.Scalar", promote=("self", "other"))
def sub(self: Var | Number, other: Var | Number, alpha: Number = 1):
    return op.subtract(*_as_variables(self, _multiply(other, alpha)))


@rule("aten.rsub.Tensor", "aten.rsub.Scalar", promote=("self", "other"))
def rsub(self: Var | Number, other: Var | Number, alpha: Number = 1):
    return op.subtract(*_as_variables(other, _multiply(self, alpha)))


@rule("aten.mul.Tensor", "aten.mul.Scalar", "aten.multiply.Tensor", "aten.multiply.Scalar", promote=("self", "other"))
def mul(self: Var | Number, other: Var | Number):
    x, y = _as_variables(self, other)
    return op.logical_and(x, y) if x.dtype is DType.BOOL else op.multiply(x, y)


def _as_variables(x: Var | Number, y: Var | Number) -> tuple[Var, Var]:
    """Return both operands as variables of one dtype."""
    if isinstance(x, Var):
        return x, like(y, x)
    if isinstance(y, Var):
        return like(x, y), y
    raise Unsupported("both operands are numbers")


@rule(
    "aten.div.Tensor",
    "aten.div.Scalar",
    "aten.divide.Tensor",
    "aten.divide.Scalar",
    "aten.true_divide.Tensor",
    promote=("self", "other"),
    to_float=True,
)
def div(self: Var | Number, other: Var | Number):
    return op.divide(*_as_variables(self, other))


@rule("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.divide.Tensor_mode", promote=("self", "other"))
def div_mode(self: Var | Number, other: Var | Number, rounding_mode: str | None):
    x, y = _as_variables(self, other)
    if rounding_mode is None:
        return op.divide(as_floating(x), as_floating(y))
    if rounding_mode == "floor":
        return op.floor_divide(x, y)
    if x.dtype.is_floating:
        return op.trunc(op.divide(x, y))
    floor = op.floor_divide(x, y)  # truncation is the floor plus 1 if the signs differ and the division has a remainder
    left = op.not_equal(op.multiply(floor, y), x)
    differ = op.not_equal(op.less(x, like(0, x)), op.less(y, like(0, y)))
    return op.add(floor, op.cast(op.logical_and(left, differ), dtype=x.dtype))


@rule("aten.floor_divide.default", "aten.floor_divide.Scalar", promote=("self", "other"))
def floor_divide(self: Var | Number, other: Var | Number):
    return op.floor_divide(*_as_variables(self, other))


@rule("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor", promote=("self", "other"))
def remainder(self: Var | Number, other: Var | Number):
    return op.remainder(*_as_variables(self, other))


@rule("aten.fmod.Tensor", "aten.fmod.Scalar", promote=("self", "other"))
def fmod(self: Var | Number, other: Var | Number):
    return op.fmod(*_as_variables(self, other))


@rule("aten.pow.Tensor_Scalar", promote=("self", "exponent"))
def pow_scalar(self: Var, exponent: Number | Var):
    if isinstance(exponent, Var):
        return op.power(self, exponent)
    x = self if float(exponent).is_integer() and not isinstance(exponent, float) else as_floating(self)
    if exponent == 0:
        return op.full_like(x, value=1.0, dtype=x.dtype)
    if exponent == 1:
        return x
    if exponent == 2:
        return op.square(x) if x.dtype.is_floating else op.multiply(x, x)
    if exponent == 3:
        return op.multiply(op.multiply(x, x), x)
    if exponent == 0.5:
        return op.sqrt(x)
    if exponent == -0.5:
        return op.rsqrt(x)
    if exponent == -1:
        return op.reciprocal(x)
    return op.power(x, like(exponent, x))


@rule("aten.pow.Tensor_Tensor", "aten.pow.Scalar", promote=("self", "exponent"))
def pow_tensor(self: Var | Number, exponent: Var | Number):
    return op.power(*_as_variables(self, exponent))


@rule("aten.float_power.Tensor_Tensor", "aten.float_power.Scalar")
def float_power(self: Var | Number, exponent: Var):
    base = self if isinstance(self, Var) else op.full(shape=(), value=float(self), dtype=DType.FLOAT64)
    return op.float_power(base, exponent)


@rule("aten.float_power.Tensor_Scalar")
def float_power_scalar(self: Var, exponent: Number):
    """Raise to a constant power in float64. Squares and roots are special cases, as in `pow`."""
    return pow_scalar(as_dtype(self, self.dtype if self.dtype.is_complex else DType.FLOAT64), float(exponent))


@rule("aten.maximum.default", "aten.max.other", promote=("self", "other"))
def maximum(self: Var, other: Var):
    if self.dtype is DType.BOOL:
        return op.logical_or(self, other)
    return op.maximum(self, other)


@rule("aten.minimum.default", "aten.min.other", promote=("self", "other"))
def minimum(self: Var, other: Var):
    if self.dtype is DType.BOOL:
        return op.logical_and(self, other)
    return op.minimum(self, other)


@rule("aten.fmax.default", promote=("self", "other"))
def fmax(self: Var, other: Var):
    return op.fmax(self, other) if self.dtype.is_floating else maximum(self, other)


@rule("aten.fmin.default", promote=("self", "other"))
def fmin(self: Var, other: Var):
    return op.fmin(self, other) if self.dtype.is_floating else minimum(self, other)


@rule("aten.atan2.default", "aten.arctan2.default", promote=("self", "other"), to_float=True)
def atan2(self: Var, other: Var):
    return op.atan2(self, other)


@rule("aten.clamp.default", "aten.clip.default", "aten.clamp.Tensor", "aten.clip.Tensor", promote=("self", "min", "max"))
def clamp(self: Var, min: Number | Var | None = None, max: Number | Var | None = None):
    return self if min is None and max is None else _clip(self, min, max)


@rule("aten.clamp_min.default", "aten.clamp_min.Tensor", promote=("self", "min"))
def clamp_min(self: Var, min: Number | Var):
    return _clip(self, min, None)


@rule("aten.clamp_max.default", "aten.clamp_max.Tensor", promote=("self", "max"))
def clamp_max(self: Var, max: Number | Var):
    return _clip(self, None, max)


def _clip(x: Var, lower: Number | Var | None, upper: Number | Var | None) -> Var:
    """Clip `x`. Bounds that are numbers use `clip`; tensor bounds get gradients, through `maximum` and `minimum`."""
    if isinstance(lower, Var) or isinstance(upper, Var):
        x = x if lower is None else op.maximum(x, like(lower, x))
        return x if upper is None else op.minimum(x, like(upper, x))
    low, high = (None if bound is None else like(bound, x) for bound in (lower, upper))
    return op.clip(x, low, high)


@rule("aten.addcmul.default", promote=("self", "tensor1", "tensor2", "value"))
def addcmul(self: Var, tensor1: Var, tensor2: Var, value: Number = 1):
    if self.dtype.is_floating:
        return op.addcmul(self, _multiply(tensor1, value), tensor2)
    return op.add(self, _multiply(op.multiply(tensor1, tensor2), value))


@rule("aten.addcdiv.default", promote=("self", "tensor1", "tensor2", "value"), to_float=True)
def addcdiv(self: Var, tensor1: Var, tensor2: Var, value: Number = 1):
    return op.addcdiv(self, tensor1, tensor2, value=float(value))


@rule("aten.lerp.Scalar", "aten.lerp.Tensor", promote=("self", "end", "weight"))
def lerp(self: Var, end: Var, weight: Number | Var, result: TensorType):
    weight = weight if isinstance(weight, Var) else like(weight, self)
    return op.lerp(*(broadcasted(x, result.shape or ()) for x in (self, end, weight)))


_BINARY = {
    "copysign": ("copysign.Tensor", "copysign.Scalar"),
    "hypot": ("hypot.default",),
    "logaddexp": ("logaddexp.default",),
    "logaddexp2": ("logaddexp2.default",),
    "nextafter": ("nextafter.default",),
    "xlog1py": ("special_xlog1py.default", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar"),
    "xlogy": ("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self",
              "special_xlogy.default", "special_xlogy.other_scalar", "special_xlogy.self_scalar"),
}  # fmt: skip


def _binary_rule(name: str) -> Callable[[Var | Number, Var | Number], Var]:
    def apply(self: Var | Number, other: Var | Number) -> Var:
        return getattr(op, name)(*_as_variables(self, other))

    return apply


for _name, _overloads in _BINARY.items():
    rule(*(f"aten.{_overload}" for _overload in _overloads), promote=("self", "other"), to_float=True)(_binary_rule(_name))
for _name in ("gcd", "lcm"):
    rule(f"aten.{_name}.default", promote=("self", "other"))(_binary_rule(_name))


@rule("aten.ldexp.Tensor")
def ldexp(self: Var, other: Var):
    x = as_floating(self)
    return op.ldexp(x, as_dtype(other, x.dtype))


@rule("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device")
def to(self: Var, dtype: object = None, layout=None, device=None, pin_memory=None, non_blocking=False, copy=False, memory_format=None):
    return as_dtype(self, dtype)

"""Functions of one tensor, element by element: exponentials, roots, trigonometry, rounding."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.torch.rules.arguments import as_floating, find_dtype, like
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

_OF_FLOATS = {
    "acos": "acos",
    "acosh": "acosh",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cos": "cos",
    "cosh": "cosh",
    "erf": "erf",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "sin": "sin",
    "sinh": "sinh",
    "special_erf": "erf",
    "special_expm1": "expm1",
    "special_log1p": "log1p",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "special_expit": "sigmoid",
}
_OF_NUMBERS = {"abs": "abs", "absolute": "abs", "neg": "neg", "negative": "neg"}
_ROUNDING = {"ceil": "ceil", "fix": "trunc", "trunc": "trunc"}


def _of_floats(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(as_floating(self))

    return apply


def _of_numbers(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self)

    return apply


def _rounding(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self) if self.dtype.is_floating else self

    return apply


for _table, _make in ((_OF_FLOATS, _of_floats), (_OF_NUMBERS, _of_numbers), (_ROUNDING, _rounding)):
    for _overload, _operator in _table.items():
        rule(f"aten.{_overload}.default")(_make(_operator))


@rule("aten.round.default", "aten.round.decimals")
def round(self: Var, decimals: int = 0):
    if not self.dtype.is_floating:
        return self
    if decimals == 0:
        return op.round(self)
    factor = 10.0 ** abs(decimals)
    if decimals < 0:
        return op.multiply(op.round(op.divide(self, factor)), factor)
    return op.divide(op.round(op.multiply(self, factor)), factor)


@rule("aten.sign.default", "aten.sgn.default")
def sign(self: Var):
    return op.sign(self)


@rule("aten.log10.default")
def log10(self: Var):
    return op.multiply(op.log(as_floating(self)), 0.43429448190325182765)


@rule("aten.exp2.default", "aten.special_exp2.default")
def exp2(self: Var):
    return op.exp(op.multiply(as_floating(self), 0.69314718055994530942))


@rule("aten.erfc.default", "aten.special_erfc.default")
def erfc(self: Var):
    return op.subtract(1.0, op.erf(as_floating(self)))


@rule("aten.square.default")
def square(self: Var):
    return op.square(self) if self.dtype.is_floating else op.multiply(self, self)


@rule("aten.frac.default")
def frac(self: Var):
    return op.subtract(self, op.trunc(self))


@rule("aten.deg2rad.default")
def deg2rad(self: Var):
    return op.multiply(as_floating(self), 0.01745329251994329577)


@rule("aten.rad2deg.default")
def rad2deg(self: Var):
    return op.multiply(as_floating(self), 57.2957795130823208768)


@rule("aten.logit.default", "aten.special_logit.default")
def logit(self: Var, eps: float | None = None):
    x = as_floating(self)
    x = x if eps is None else op.clip(x, like(eps, x), like(1.0 - eps, x))
    return op.log(op.divide(x, op.subtract(1.0, x)))


@rule("aten.sinc.default", "aten.special_sinc.default")
def sinc(self: Var):
    x = op.multiply(as_floating(self), 3.14159265358979323846)
    zero = op.equal(x, like(0.0, x))
    safe = op.where(zero, like(1.0, x), x)
    return op.where(zero, like(1.0, x), op.divide(op.sin(safe), safe))


@rule("aten.isnan.default")
def isnan(self: Var):
    return op.isnan(self) if self.dtype.is_floating else op.full_like(self, value=0.0, dtype=DType.BOOL)


@rule("aten.isinf.default")
def isinf(self: Var):
    return op.isinf(self) if self.dtype.is_floating else op.full_like(self, value=0.0, dtype=DType.BOOL)


@rule("aten.isfinite.default")
def isfinite(self: Var):
    if not self.dtype.is_floating:
        return op.full_like(self, value=1.0, dtype=DType.BOOL)
    return op.logical_not(op.logical_or(op.isnan(self), op.isinf(self)))


@rule("aten.nan_to_num.default")
def nan_to_num(self: Var, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
    if not self.dtype.is_floating:
        return self
    largest = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38, DType.FLOAT32: 3.4028234663852886e38}
    most = largest.get(self.dtype, 1.7976931348623157e308)
    zero = like(0.0, self)
    infinite = op.isinf(self)
    above, below = op.logical_and(infinite, op.greater(self, zero)), op.logical_and(infinite, op.less(self, zero))
    x = op.where(op.isnan(self), like(nan or 0.0, self), self)
    x = op.where(above, like(most if posinf is None else posinf, self), x)
    return op.where(below, like(-most if neginf is None else neginf, self), x)


@rule(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
    "aten.view_as_real_copy.default",
    "aten.positive.default",
    "aten.conj.default",
    "aten.real.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
)
def same(self: Var, memory_format=None):
    return self


@rule("aten.detach.default", "aten.detach_copy.default")
def detach(self: Var):
    return op.stop_gradient(self)


@rule("aten.view.dtype")
def view_dtype(self: Var, dtype: object):
    if find_dtype(dtype) is self.dtype:
        return self
    raise Unsupported("the bits of a tensor are taken for another dtype's")

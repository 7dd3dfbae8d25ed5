"""Elementwise functions of one tensor: exponentials, roots, trigonometry, rounding."""

import math
from collections.abc import Callable

from oarlock import op
from oarlock.interop.torch.rules.arguments import as_floating, find_dtype, like
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

_FLOAT_FUNCTIONS = {
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
    "deg2rad": "deg2rad",
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "i0": "i0",
    "lgamma": "lgamma",
    "log": "log",
    "log10": "log10",
    "log1p": "log1p",
    "log2": "log2",
    "rad2deg": "rad2deg",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "sin": "sin",
    "sinc": "sinc",
    "sinh": "sinh",
    "special_digamma": "digamma",
    "special_entr": "entr",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfcx": "erfcx",
    "special_erfinv": "erfinv",
    "special_exp2": "exp2",
    "special_expm1": "expm1",
    "special_gammaln": "lgamma",
    "special_i0": "i0",
    "special_i0e": "i0e",
    "special_i1": "i1",
    "special_i1e": "i1e",
    "special_log1p": "log1p",
    "special_log_ndtr": "log_ndtr",
    "special_ndtr": "ndtr",
    "special_ndtri": "ndtri",
    "special_psi": "digamma",
    "special_sinc": "sinc",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "special_expit": "sigmoid",
}
_NUMBER_FUNCTIONS = {
    "abs": "abs",
    "absolute": "abs",
    "detach": "stop_gradient",
    "detach_copy": "stop_gradient",
    "frac": "frac",
    "imag": "imag",
    "neg": "neg",
    "negative": "neg",
    "view_as_complex": "view_as_complex",
    "view_as_complex_copy": "view_as_complex",
    "view_as_real": "view_as_real",
    "view_as_real_copy": "view_as_real",
}
_CLASSES = {"isfinite": 1.0, "isinf": 0.0, "isnan": 0.0, "isneginf": 0.0, "isposinf": 0.0}
"""Classes of floats, and their values for integers."""

_ROUNDING_FUNCTIONS = {"ceil": "ceil", "fix": "trunc", "trunc": "trunc"}


def _float_rule(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(as_floating(self))

    return apply


def _number_rule(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self)

    return apply


def _rounding_rule(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self) if self.dtype.is_floating else self

    return apply


def _class_rule(name: str) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return getattr(op, name)(self) if self.dtype.is_inexact else op.full_like(self, value=_CLASSES[name], dtype=DType.BOOL)

    return apply


for _table, _make in ((_FLOAT_FUNCTIONS, _float_rule), (_NUMBER_FUNCTIONS, _number_rule), (_ROUNDING_FUNCTIONS, _rounding_rule)):
    for _overload, _operator in _table.items():
        rule(f"aten.{_overload}.default")(_make(_operator))
for _name in _CLASSES:
    rule(f"aten.{_name}.default")(_class_rule(_name))


@rule("aten.round.default", "aten.round.decimals")
def round(self: Var, decimals: int = 0):
    if not self.dtype.is_floating:
        return self
    return op.round(self) if decimals == 0 else op.around(self, decimals=decimals)


@rule("aten.sign.default", "aten.sgn.default")
def sign(self: Var):
    return op.sgn(self) if self.dtype.is_complex else op.sign(self)


@rule("aten.square.default")
def square(self: Var):
    return op.square(self) if self.dtype.is_inexact else op.multiply(self, self)


@rule("aten.logit.default", "aten.special_logit.default")
def logit(self: Var, eps: float | None = None):
    return op.logit(as_floating(self), epsilon=eps)


@rule("aten.polygamma.default", "aten.special_polygamma.default")
def polygamma(n: int, self: Var):
    return op.polygamma(as_floating(self), order=n)


@rule("aten.nan_to_num.default")
def nan_to_num(self: Var, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
    return op.nan_to_num(self, nan=nan or 0.0, posinf=posinf, neginf=neginf) if self.dtype.is_inexact else self


@rule(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
    "aten.positive.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
)
def same(self: Var, memory_format=None):
    return self


@rule("aten.conj.default", "aten._conj.default", "aten.conj_physical.default")
def conj(self: Var):
    return op.conj(self) if self.dtype.is_complex else self


@rule("aten.real.default")
def real(self: Var):
    return op.real(self) if self.dtype.is_complex else self


@rule("aten.complex.default")
def complex(real: Var, imag: Var):
    return op.complex(real, imag)


@rule("aten.polar.default")
def polar(abs: Var, angle: Var):
    return op.polar(abs, angle)


@rule("aten.angle.default")
def angle(self: Var):
    """Return the angle of complex numbers; for real numbers, 0, or pi if negative. NaN stays NaN."""
    if self.dtype.is_complex:
        return op.angle(self)
    x = as_floating(self)
    turned = op.where(op.less(x, like(0.0, x)), like(math.pi, x), like(0.0, x))
    return op.where(op.isnan(x), x, turned)


@rule("aten.view.dtype")
def view_dtype(self: Var, dtype: object):
    if find_dtype(dtype) is self.dtype:
        return self
    raise Unsupported("reinterpreting the bits of a tensor as another dtype is not supported")

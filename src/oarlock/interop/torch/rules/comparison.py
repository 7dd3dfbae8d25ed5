"""Comparisons, logic, bitwise operations, and selection by a condition."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, as_dtype, like, nonzero_in
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

_COMPARISONS = {
    "eq": "equal",
    "ge": "greater_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "less": "less",
    "less_equal": "less_equal",
    "lt": "less",
    "ne": "not_equal",
    "not_equal": "not_equal",
}
_LOGIC = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}
_BITS = {
    "and": ("logical_and", "bitwise_and"),
    "or": ("logical_or", "bitwise_or"),
    "xor": ("logical_xor", "bitwise_xor"),
}
_SHIFTS = {
    "bitwise_left_shift": ("bitwise_left_shift", "__lshift__"),
    "bitwise_right_shift": ("bitwise_right_shift", "__rshift__"),
}


def _comparison_rule(name: str) -> Callable[[Var, Var | Number], Var]:
    def apply(self: Var, other: Var | Number) -> Var:
        return getattr(op, name)(*_comparable(self, other))

    return apply


def _comparable(x: Var, y: Var | Number) -> tuple[Var, Var]:
    """Return both operands as comparable variables: bools become integers."""
    if isinstance(y, Var):
        return (as_dtype(x, DType.INT64), as_dtype(y, DType.INT64)) if x.dtype is DType.BOOL else (x, y)
    if x.dtype is DType.BOOL:
        x = as_dtype(x, DType.INT64)
    return x, like(y, x)


def _logic_rule(name: str) -> Callable[[Var, Var], Var]:
    def apply(self: Var, other: Var) -> Var:
        return getattr(op, name)(nonzero_in(self), nonzero_in(other))

    return apply


def _bits_rule(of_bools: str, of_integers: str) -> Callable[[Var, Var | Number], Var]:
    def apply(self: Var | Number, other: Var | Number) -> Var:
        x = self if isinstance(self, Var) else like(self, other)  # type: ignore[arg-type]
        y = like(other, x)
        return getattr(op, of_bools if x.dtype is DType.BOOL else of_integers)(x, y)

    return apply


def _shift_rule(name: str) -> Callable[[Var, Var | Number], Var]:
    def apply(self: Var | Number, other: Var | Number) -> Var:
        x = self if isinstance(self, Var) else like(self, other)  # type: ignore[arg-type]
        return getattr(op, name)(x, like(other, x))

    return apply


for _overload, _operator in _COMPARISONS.items():
    rule(f"aten.{_overload}.Tensor", f"aten.{_overload}.Scalar", promote=("self", "other"))(_comparison_rule(_operator))
for _overload, _operator in _LOGIC.items():
    rule(f"aten.{_overload}.default")(_logic_rule(_operator))
for _overload, _pair in _BITS.items():
    rule(
        *(f"aten.bitwise_{_overload}.{kind}" for kind in ("Tensor", "Scalar", "Scalar_Tensor")),
        *(f"aten.__{_overload}__.{kind}" for kind in ("Tensor", "Scalar")),
        promote=("self", "other"),
    )(_bits_rule(*_pair))
for _overload, _names in _SHIFTS.items():
    rule(
        *(f"aten.{_overload}.{kind}" for kind in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
        *(f"aten.{_names[1]}.{kind}" for kind in ("Tensor", "Scalar")),
        promote=("self", "other"),
    )(_shift_rule(_overload))


@rule("aten.logical_not.default")
def logical_not(self: Var):
    return op.logical_not(nonzero_in(self))


@rule("aten.bitwise_not.default")
def bitwise_not(self: Var):
    return op.logical_not(self) if self.dtype is DType.BOOL else op.bitwise_not(self)


@rule("aten.equal.default")
def equal(self: Var, other: Var):
    if self.shape != other.shape:
        raise Unsupported("tensors of different shapes cannot be compared")
    return op.all(op.equal(self, other))


@rule("aten.isclose.default", promote=("self", "other"))
def isclose(self: Var, other: Var, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False):
    return op.isclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@rule("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar", promote=("self", "other"))
def where(condition: Var, self: Var | Number, other: Var | Number):
    if isinstance(self, Var):
        return op.where(condition, self, like(other, self))
    if isinstance(other, Var):
        return op.where(condition, like(self, other), other)
    raise Unsupported("both choices are numbers")


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(self: Var, mask: Var, value: Number | Var):
    return op.masked_fill(self, mask, as_dtype(value, self.dtype) if isinstance(value, Var) else value)


@rule("aten.heaviside.default", promote=("self", "values"))
def heaviside(self: Var, values: Var):
    return op.heaviside(self, values)


@rule("aten.signbit.default")
def signbit(self: Var):
    return op.full_like(self, value=0.0, dtype=DType.BOOL) if self.dtype is DType.BOOL else op.signbit(self)

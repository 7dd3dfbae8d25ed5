"""Conversion of call arguments: numbers in place of variables, and repetition of inputs along leading axes.

A number gets the dtype of a variable or of the signature, which must be able to represent it. Inputs are broadcast along axes `*~b` with
NumPy's rules.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from numbers import Complex, Real
from typing import TYPE_CHECKING, TypeGuard

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.python_number import is_bool
from oarlock.ir.shape_rules import broadcast_shape
from oarlock.ir.size import Shape, names_in
from oarlock.ir.var import Var
from oarlock.registry.call_signature import format_call
from oarlock.registry.catalogue import standard
from oarlock.registry.signature import Signature, Slot

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator
    from oarlock.registry.signature import Slot

__all__ = ["find_numbers", "find_repeated", "infer_number_dtypes", "is_number", "repeat", "require_held"]

_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38, DType.FLOAT32: 3.4028234663852886e38}


def is_number(value: object) -> TypeGuard[complex]:
    """Return whether a value is a Python or NumPy number, complex numbers and bools included."""
    return isinstance(value, Complex) or is_bool(value)


def find_numbers(operator: "Operator", given: Mapping[str, object]) -> dict[str, complex]:
    """Return the numbers among the arguments, for slots that accept one.

    A condition does not accept a Python bool, which is usually a mistaken `x == y` of plain Python values.
    """
    numbers = {name: item for name, item in given.items() if not isinstance(item, Var) and is_number(item)}
    slots = {slot.name: slot for slot in operator.signature.inputs if slot.takes_number} if numbers else {}
    return {name: item for name, item in numbers.items() if name in slots and not (is_bool(item) and _is_condition(operator, slots[name]))}


def _is_condition(operator: "Operator", slot: "Slot") -> bool:
    """Return whether a slot is a condition for other slots or blocks, unlike the operands of `logical_and`."""
    return slot.dtype == DType.BOOL.value and any(other.dtype != slot.dtype for other in operator.signature.inputs)


def infer_number_dtypes(operator: "Operator", numbers: Mapping[str, complex], given: Mapping[str, object]) -> dict[str, tuple[DType, Var]]:
    """Return the dtype of each number, and a variable of the program: from a variable in a slot with the same dtype in the signature.

    Bools match bool variables only; elsewhere they are omitted and rejected later. Raises ArgumentError if the dtype is unknown.
    """
    kinds = {slot.name: slot.dtype for slot in operator.signature.inputs}
    vars = {name: item for name, item in given.items() if isinstance(item, Var)}
    concrete = {dtype.value: dtype for dtype in DType}
    found: dict[str, tuple[DType, Var]] = {}
    for name, number in numbers.items():
        beside = next((var for slot, var in vars.items() if kinds.get(slot) == kinds[name]), None)
        if beside is None and kinds[name] not in concrete:
            raise ArgumentError(
                f"{operator.type}: {name} is the number {number}, but its dtype cannot be inferred",
                location=here(),
                contract=format_call(operator),
                given=[var.describe() for var in vars.values()],
                hint=f'pass ol.op.full(shape=(), value={number}, dtype="float32")',
                op=operator.type,
            )
        dtype = concrete.get(kinds[name]) or beside.dtype  # type: ignore[union-attr]
        if dtype is DType.BOOL or not is_bool(number):
            found[name] = (dtype, next(iter(vars.values())) if beside is None else beside)
    return found


def require_held(number: complex, dtype: DType, beside: Var, what: str = "") -> float | complex:
    """Return `number` as a float, or a complex number if it is not real, if `dtype` can represent it, possibly rounded.

    Fractions do not convert to integers, finite numbers not to infinity, only bools to bools, and complex numbers only to complex dtypes.
    Otherwise it raises DTypeError, prefixed with `what`.
    """
    whose = f'"{beside.name}" is {dtype}' if beside.dtype is dtype else f"a number here is {dtype}"
    if dtype is DType.BOOL and not is_bool(number):
        raise DTypeError(
            f"{what}{whose}, which does not combine with {number}",
            location=here(),
            given=[beside.describe()],
            hint="`&` and `|` bind tighter than comparisons: (x > 0) & (y > 0)",
        )
    value: float | complex
    try:
        value = complex(number) if isinstance(number, Complex) and not isinstance(number, Real) else float(number)  # type: ignore[arg-type]
    except OverflowError:  # an int larger than all floats
        value = math.inf
    parts = (value.real, value.imag)
    exact = value == number or value != value
    if isinstance(value, complex):
        value = value if value.imag or math.copysign(1.0, value.imag) < 0.0 else value.real
    if dtype.is_inexact:
        largest = _LARGEST.get(dtype.real, sys.float_info.max)
        fits = all(abs(part) <= largest or (exact and not math.isfinite(part)) for part in parts)
        held = fits and (dtype.is_complex or not isinstance(value, complex))
    else:
        held = exact and not isinstance(value, complex) and dtype.holds(value)
    if not held:
        raise DTypeError(
            f"{what}{whose}, which cannot represent {number!s:.60}", location=here(), given=[beside.describe()], hint=_wider(dtype, value)
        )
    return value


def _wider(dtype: DType, value: float | complex) -> str | None:
    """Return a hint to convert the variable to a dtype that can represent the value, or None."""
    if isinstance(value, complex):
        if not dtype.is_complex:
            return f'use ol.op.cast(x, dtype="{dtype.complex or DType.COMPLEX64}") to convert it'
        return 'use ol.op.cast(x, dtype="complex128") for a larger range' if dtype is DType.COMPLEX64 else None
    if not dtype.is_inexact and value % 1 != 0:
        return 'use ol.op.cast(x, dtype="float32") to convert it'
    widest = DType.COMPLEX128 if dtype.is_complex else DType.FLOAT64 if dtype.is_floating else DType.INT64
    return f'use ol.op.cast(x, dtype="{widest}") for a larger range' if dtype is not widest and math.isfinite(value) else None


def find_repeated(signature: Signature, given: Mapping[str, Sequence[Var]]) -> dict[Var, Shape]:
    """Return the inputs to repeat, with their new shapes; none if the sizes cannot be broadcast."""
    slots = [slot for slot in signature.inputs if slot.repeated]
    fronts = {var: front for slot in slots for var in given.get(slot.name, ()) if (front := _front(slot, var)) is not None}
    if len(set(fronts.values())) < 2:
        return {}
    common: Shape = ()
    try:
        for front in fronts.values():
            common = broadcast_shape(common, front)
    except ShapeError:
        return {}  # rejected by the signature with a better message
    return {var: (*common, *(var.shape or ())[len(front) :]) for var, front in fronts.items() if front != common}


def _front(slot: Slot, var: Var) -> Shape | None:
    """Return the sizes of `var` along the axes `*~b`; None if its rank is too small."""
    behind = len(slot.axes or ()) - 1
    return None if var.shape is None or len(var.shape) < behind else var.shape[: len(var.shape) - behind]


def repeat(given: Mapping[str, Sequence[Var]], wanted: Mapping[Var, Shape]) -> dict[str, list[Var]]:
    """Append ops that repeat the inputs in `wanted` to the given shapes; return all inputs by slot. The gradients are summed."""
    broadcast_to, vars = standard.get("broadcast_to"), [var for each in given.values() for var in each]
    repeated: dict[Var, Var] = {}
    for var, shape in wanted.items():
        lacking = {name for size in shape for name in names_in(size)} - {name for size in var.shape or () for name in names_in(size)}
        like = [other for other in vars if lacking & {name for size in other.shape or () for name in names_in(size)}]
        repeated[var] = broadcast_to(var, like[:1] if len(lacking) == 1 else like, shape=shape)
    return {slot: [repeated.get(var, var) for var in each] for slot, each in given.items()}

"""Numbers of Python and NumPy where a variable is due: the dtype that they take, and what is refused rather than changed."""

import math
import sys
from collections.abc import Mapping
from numbers import Complex, Real
from typing import TYPE_CHECKING, TypeGuard

from oarlock.errors import ArgumentError, DTypeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.python_number import is_bool
from oarlock.ir.var import Var
from oarlock.registry.call_signature import format_call

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator
    from oarlock.registry.signature import Slot

__all__ = ["find_numbers", "infer_number_dtypes", "is_number", "require_held"]

_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38, DType.FLOAT32: 3.4028234663852886e38}


def is_number(value: object) -> TypeGuard[complex]:
    """Whether a value is a number of Python or NumPy, a complex one too, or a bool."""
    return isinstance(value, Complex) or is_bool(value)


def find_numbers(operator: "Operator", given: Mapping[str, object]) -> dict[str, complex]:
    """The numbers among what is given by slot, where the slot takes one.

    A condition takes no Python bool: as a rule, `x == y` of plain Python values was meant to compare variables.
    """
    numbers = {name: item for name, item in given.items() if not isinstance(item, Var) and is_number(item)}
    slots = {slot.name: slot for slot in operator.signature.inputs if slot.takes_number} if numbers else {}
    return {name: item for name, item in numbers.items() if name in slots and not (is_bool(item) and _is_condition(operator, slots[name]))}


def _is_condition(operator: "Operator", slot: "Slot") -> bool:
    """Whether a slot decides about what other slots hold, or about blocks, unlike the operands of `logical_and`."""
    return slot.dtype == DType.BOOL.value and any(other.dtype != slot.dtype for other in operator.signature.inputs)


def infer_number_dtypes(operator: "Operator", numbers: Mapping[str, complex], given: Mapping[str, object]) -> dict[str, tuple[DType, Var]]:
    """The dtype that each number takes, and the variable that it stands beside: one in a slot of the same dtype, by the signature.

    A bool stands beside bools alone: elsewhere it is left out, and refused as no number. Raises ArgumentError where no dtype is told.
    """
    kinds = {slot.name: slot.dtype for slot in operator.signature.inputs}
    vars = {name: item for name, item in given.items() if isinstance(item, Var)}
    concrete = {dtype.value: dtype for dtype in DType}
    found: dict[str, tuple[DType, Var]] = {}
    for name, number in numbers.items():
        beside = next((var for slot, var in vars.items() if kinds.get(slot) == kinds[name]), None)
        if beside is None and kinds[name] not in concrete:
            raise ArgumentError(
                f"{operator.type}: {name} is the number {number}, and no variable tells its dtype",
                location=here(),
                contract=format_call(operator),
                given=[var.describe() for var in vars.values()],
                hint=f'ol.op.full(shape=(), value={number}, dtype="float32") is a variable that holds it',
                op=operator.type,
            )
        dtype = concrete.get(kinds[name]) or beside.dtype  # type: ignore[union-attr]
        if dtype is DType.BOOL or not is_bool(number):
            found[name] = (dtype, next(iter(vars.values())) if beside is None else beside)
    return found


def require_held(number: complex, dtype: DType, beside: Var, what: str = "") -> float | complex:
    """`number` as a float, or as a complex number that is not real, if a dtype holds it: floats and their like may round it.

    No fraction becomes an integer, nothing that is finite infinite, bools take bools, and only complex dtypes what is not real. Raises
    DTypeError, which begins with `what`, for any other.
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
    except OverflowError:  # an int beyond all floats
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
            f"{what}{whose}, which does not hold {number!s:.60}", location=here(), given=[beside.describe()], hint=_wider(dtype, value)
        )
    return value


def _wider(dtype: DType, value: float | complex) -> str | None:
    """A hint on how to have a variable that holds a value; None where no dtype does."""
    if isinstance(value, complex):
        if not dtype.is_complex:
            return f'ol.op.cast(x, dtype="{dtype.complex or DType.COMPLEX64}") makes it complex'
        return 'ol.op.cast(x, dtype="complex128") holds more' if dtype is DType.COMPLEX64 else None
    if not dtype.is_inexact and value % 1 != 0:
        return 'ol.op.cast(x, dtype="float32") makes it a float'
    widest = DType.COMPLEX128 if dtype.is_complex else DType.FLOAT64 if dtype.is_floating else DType.INT64
    return f'ol.op.cast(x, dtype="{widest}") holds more' if dtype is not widest and math.isfinite(value) else None

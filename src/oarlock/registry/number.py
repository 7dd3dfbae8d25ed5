"""Numbers of Python and NumPy where a variable is due: the dtype that they take, and what is refused rather than changed."""

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, TypeGuard

from oarlock.errors import ArgumentError, DTypeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.python_number import is_bool
from oarlock.ir.var import Var
from oarlock.registry.call_signature import format_call

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["find_numbers", "infer_number_dtypes", "require_held"]

_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38, DType.FLOAT32: 3.4028234663852886e38}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) or is_bool(value)


def find_numbers(operator: "Operator", given: Mapping[str, object]) -> dict[str, float]:
    """The numbers among what is given by slot, where the slot takes one."""
    numbers = {name: item for name, item in given.items() if not isinstance(item, Var) and _is_number(item)}
    slots = {slot.name for slot in operator.signature.inputs if slot.takes_number} if numbers else ()
    return {name: item for name, item in numbers.items() if name in slots}


def infer_number_dtypes(operator: "Operator", numbers: Mapping[str, float], given: Mapping[str, object]) -> dict[str, tuple[DType, Var]]:
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


def require_held(number: float, dtype: DType, beside: Var, what: str = "") -> float:
    """`number` as a float, if a dtype holds it: a float may round it. Raises DTypeError, which begins with `what`, for any other.

    No fraction becomes an integer, nothing that is finite infinite, and bools take bools.
    """
    whose = f'"{beside.name}" is {dtype}' if beside.dtype is dtype else f"a number here is {dtype}"
    if dtype is DType.BOOL and not is_bool(number):
        raise DTypeError(
            f"{what}{whose}, which does not combine with {number}",
            location=here(),
            given=[beside.describe()],
            hint="`&` and `|` bind tighter than comparisons: (x > 0) & (y > 0)",
        )
    try:
        value = float(number)
    except OverflowError:  # an int beyond all floats
        value = math.inf
    exact = value == number or value != value
    if dtype.is_floating:
        held = abs(value) <= _LARGEST.get(dtype, sys.float_info.max) or (exact and not math.isfinite(value))
    else:
        held = exact and dtype.holds(value)
    if not held:
        raise DTypeError(
            f"{what}{whose}, which does not hold {number!s:.60}", location=here(), given=[beside.describe()], hint=_wider(dtype, value)
        )
    return value


def _wider(dtype: DType, value: float) -> str | None:
    """A hint on how to have a variable that holds a value; None where no dtype does."""
    if not dtype.is_floating and value % 1 != 0:
        return 'ol.op.cast(x, dtype="float32") makes it a float'
    widest = DType.FLOAT64 if dtype.is_floating else DType.INT64
    return f'ol.op.cast(x, dtype="{widest}") holds more' if dtype is not widest and math.isfinite(value) else None

"""Lossless conversion of a batch of a column to the dtype of an input."""

import math

import numpy
import torch

from oarlock.errors import FeedError, OarlockError
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.runtime.feed import as_ragged
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.value import describe_value, find_dense_form, read_as, to_numpy
from oarlock.tensor.dtype import to_torch

__all__ = ["convert"]

_SHOWN = 5  # values of a row to show in a message


def convert(var: Var, levels: int, value: object, rows: numpy.ndarray | None = None, *, rounds: bool = False) -> "numpy.ndarray | Ragged":
    """Convert `value`, a column of a batch, to the dtype of the input `var`, which is ragged in `levels` levels.

    The conversion must be exact; with `rounds`, floats may be rounded. `rows`, int64[n], are the row numbers in the table, for messages.
    Raises FeedError with column and row for text and other non-numeric values, for a tensor that is not dense, for rows of different
    lengths if `var` is not ragged, and for numbers that the dtype cannot represent. Shapes are checked later, when the batch is fed.
    """
    if var.dtype is DType.BFLOAT16 and isinstance(value, torch.Tensor) and value.dtype is torch.bfloat16 and not levels:
        return value.detach()  # type: ignore[return-value]  NumPy has no bfloat16
    if isinstance(value, torch.Tensor):
        if (form := find_dense_form(value)) is not None:
            raise FeedError(
                f'"{var.name}" must be {var.type_text}, not {describe_value(value)}',
                location=var.location,
                hint=f"convert it to a dense tensor: {form}",
            )
        value = to_numpy(value)
    if isinstance(value, numpy.ma.MaskedArray) and value.mask.any():
        row = int(numpy.argwhere(value.mask)[0][0]) if value.ndim else 0
        raise _refused(var, "has masked values", _HINT, [f"the first is in row {_number(rows, row)}"])
    if levels:
        return _ragged(var, levels, value)
    if isinstance(value, Ragged):
        raise FeedError(
            f'"{var.name}" is not ragged, but a Ragged is fed',
            location=var.location,
            given=[f'"{var.name}" fed as {value!r}'],
            hint=f'declare it as ragged: ol.layer.data("{var.name}", ..., ragged=1)',
        )
    array = value if isinstance(value, numpy.ndarray) and value.dtype != object else _of_items(var, value, rows)
    if rounds and array.dtype.kind == "f" and var.dtype.is_floating and var.dtype is not DType.BFLOAT16:  # NumPy has no bfloat16
        with numpy.errstate(over="ignore"):
            rounded = array.astype(str(var.dtype), copy=False)
        if (numpy.isinf(rounded) == numpy.isinf(array)).all():
            return rounded
    return array if var.dtype is DType.BFLOAT16 else _exact(var, array, rows)


def _ragged(var: Var, levels: int, value: object) -> Ragged:
    ragged = as_ragged(var, list(value) if isinstance(value, numpy.ndarray) and value.dtype == object else value, levels)
    values = _exact(var, ragged.values, None)
    return ragged if values is ragged.values else Ragged(values, ragged.splits)


def _of_items(var: Var, value: object, rows: numpy.ndarray | None) -> numpy.ndarray:
    """Return a list of values as an array: Python numbers, or arrays of equal shapes. Raises FeedError, with the first invalid item."""
    if not isinstance(value, list | tuple | numpy.ndarray):
        held = numpy.asarray(value) if hasattr(value, "__array__") else None
        if held is not None and held.dtype != object:
            return held  # a Series or DataFrame
        value = list(value) if hasattr(value, "__len__") and not isinstance(value, str | bytes | dict) else [value]  # type: ignore[call-overload]
    items = value.tolist() if isinstance(value, numpy.ndarray) else list(value)  # rows of an object array become lists
    beyond = next((number for number, item in enumerate(items) if isinstance(item, float) and _is_beyond(item, var.dtype)), None)
    if beyond is not None:
        given = [f"row {_number(rows, beyond)} has {items[beyond]!r:.60}"]
        raise _refused(var, f"has a number outside the range of {var.dtype}", f'declare "{var.name}" as float64, or drop the row', given)
    try:
        if all(isinstance(item, bool | int | float) for item in items):
            return to_numpy(read_as(items, var.dtype))
        arrays = [numpy.asarray(to_numpy(item) if isinstance(item, torch.Tensor) else item) for item in items]
        stacked = numpy.stack(arrays)
    except (OarlockError, ValueError, TypeError):
        arrays, stacked = [], None
    if stacked is not None and stacked.dtype.kind in "fiub":
        if var.dtype.is_integer and stacked.dtype.kind == "f" and len({array.dtype.kind for array in arrays}) > 1:
            return to_numpy(
                read_as([array.tolist() for array in arrays], var.dtype)
            )  # a mix of floats and integers, which floats may round
        if not isinstance(items[0], list | tuple):
            return stacked
        return to_numpy(read_as(items, var.dtype))  # Python numbers have no dtype
    first = _shape(items[0])
    for number, item in enumerate(items):
        fits = first is not None and _shape(item) == first
        if not fits:
            given = f"row {_number(rows, number)} has {item!r:.60}"
            raise _refused(var, "has a row that is not numeric or has a different shape from the previous rows", _HINT, [given])
    raise _refused(var, "does not contain numbers of a supported dtype", _HINT, [])


def _is_beyond(number: float, dtype: DType) -> bool:
    """Return whether a finite number would become infinite. Most are decided by their size, without a tensor."""
    if abs(number) <= 65504.0 or not math.isfinite(number) or not dtype.is_inexact:
        return False
    return bool(torch.isinf(torch.tensor(number, dtype=torch.float64).to(to_torch(dtype))))


def _shape(item: object) -> tuple[int, ...] | None:
    """Return the shape of numeric values, or None for other values."""
    try:
        array = numpy.asarray(item)
    except ValueError:  # lists of different lengths
        return None
    return array.shape if array.dtype.kind in "fiub" else None


_HINT = "drop such rows, or convert them to numbers with ol.train(..., transform=...)"


def _exact(var: Var, array: numpy.ndarray, rows: numpy.ndarray | None) -> numpy.ndarray:
    """Convert `array` to the dtype of `var` exactly. Raises FeedError for the first row that cannot be represented."""
    if array.dtype.kind not in "fiub":
        given = (
            [f"row {_number(rows, 0)} has {array.reshape(len(array), -1)[0, :_SHOWN].tolist()!r:.60}"] if array.ndim and array.size else []
        )
        raise _refused(var, f"is {array.dtype}, not a supported numeric dtype", _HINT, given)
    wanted = numpy.dtype(str(var.dtype))
    if array.dtype == wanted:
        return array
    if numpy.can_cast(array.dtype, wanted, "safe") and not (array.dtype.kind in "iu" and wanted.kind == "f" and array.dtype.itemsize == 8):
        return array.astype(wanted)
    with numpy.errstate(all="ignore"):
        read = array.astype(wanted)
        kept = array.dtype.kind != "b" and wanted.kind != "b" and _same(array, read)
    if isinstance(kept, numpy.ndarray) and kept.all():
        return read
    lost = numpy.flatnonzero(~kept.reshape(len(array), -1).all(1)) if isinstance(kept, numpy.ndarray) and array.ndim else [0]
    shown = array[lost[0]] if array.ndim and len(array) else array
    hint = (
        f'round it to {var.dtype} with ol.data.read(data, narrow=True), or declare "{var.name}" as {array.dtype}'
        if array.dtype.kind == "f" and wanted.kind == "f"
        else f'declare "{var.name}" as {array.dtype}, or convert the column to {var.dtype} first'
    )
    given = [f"row {_number(rows, int(lost[0]))} has {numpy.reshape(shown, -1)[:_SHOWN].tolist()!r:.60}"]
    raise _refused(var, f"is {array.dtype}, and some values cannot be represented exactly in {var.dtype}", hint, given)


def _same(array: numpy.ndarray, read: numpy.ndarray) -> numpy.ndarray:
    """Return which numbers are unchanged by a conversion, bool[...]: converting back gives the same number, and NaN stays NaN."""
    back = read.astype(array.dtype)
    if array.dtype.kind == "f":
        return (back == array) | (numpy.isnan(array) & (numpy.isnan(read) if read.dtype.kind == "f" else False))
    return (back == array) & ((read < 0) == (array < 0)) & (read < 2.0**63 if array.dtype.kind == "i" else read < 2.0**64)


def _number(rows: numpy.ndarray | None, place: int) -> int:
    return place if rows is None else int(rows[place])


def _refused(var: Var, what: str, hint: str, given: list[str]) -> FeedError:
    return FeedError(
        f'the column "{var.name}" {what}', location=var.location, given=[f'"{var.name}" is {var.type_text}', *given], hint=hint
    )

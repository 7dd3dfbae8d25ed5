"""Frames of pandas and polars, as tables."""

from typing import Any

import numpy

from oarlock.data.arrow import column_of
from oarlock.data.table import ColumnTable
from oarlock.runtime.ragged import Ragged

__all__ = ["table_of_pandas", "table_of_polars"]


def table_of_pandas(frame: Any) -> ColumnTable:
    """A `pandas.DataFrame`, by its columns; the index is left out. Columns of lists are ragged, or of one more dimension."""
    return ColumnTable({str(name): _column(frame[name].to_numpy()) for name in frame.columns})


def table_of_polars(frame: Any) -> ColumnTable:
    """A `polars.DataFrame`, by its columns."""
    arrow = frame.to_arrow()
    return ColumnTable({name: column_of(arrow.column(name), name) for name in arrow.column_names})


def _column(array: numpy.ndarray) -> "numpy.ndarray | Ragged":
    if array.dtype == object and len(array) and all(isinstance(item, list | numpy.ndarray) for item in array):
        lengths = {len(item) for item in array}
        return numpy.stack(list(array)) if len(lengths) == 1 else Ragged.from_lists(list(array), dtype=_dtype_of(array))
    return array


def _dtype_of(array: numpy.ndarray) -> str | None:
    return next((str(item.dtype) for item in array if isinstance(item, numpy.ndarray)), None)

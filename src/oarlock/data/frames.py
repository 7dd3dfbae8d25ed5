"""pandas and polars DataFrames as tables."""

from typing import Any

import numpy

from oarlock.data.arrow import column_of, without_value
from oarlock.data.exact_integers import exact_array
from oarlock.data.table import LazyTable
from oarlock.runtime.ragged import Ragged

__all__ = ["table_of_pandas", "table_of_polars"]


def table_of_pandas(frame: Any) -> LazyTable:
    """Return a `pandas.DataFrame` as a table, without its index. Columns of lists are ragged, or have an additional axis."""
    names = [str(name) for name in frame.columns]
    return LazyTable(names, len(frame), lambda name: _column(frame.iloc[:, names.index(name)], name))


def table_of_polars(frame: Any) -> LazyTable:
    """Return a `polars.DataFrame` as a table."""
    return LazyTable(frame.columns, frame.height, lambda name: column_of(frame.get_column(name).to_arrow(), name))


def _column(series: Any, name: str) -> "numpy.ndarray | Ragged":
    if not isinstance(series.dtype, numpy.dtype) and series.isna().any():  # an extension dtype with missing values
        missing = series.isna().to_numpy()
        raise without_value(name, int(numpy.argmax(missing)), int(missing.sum()))
    array = series.to_numpy()
    if array.dtype == object and len(array) and all(isinstance(item, list | numpy.ndarray) for item in array):
        parts = [exact_array(item) for item in array]
        kinds = {part.dtype.kind for part in parts if part.size}
        may_round = "f" in kinds and len(kinds) > 1 and any(part.dtype.itemsize == 8 for part in parts if part.dtype.kind in "iu")
        if not may_round and all(part.ndim == 1 and part.dtype.kind in "fiub" for part in parts):
            lengths = [len(part) for part in parts]
            if len(set(lengths)) == 1:
                return numpy.stack(parts)
            held = [part for part in parts if len(part)]  # an empty list has no dtype
            return Ragged.from_lengths(numpy.concatenate(held) if held else numpy.zeros(0, "int64"), lengths)
    return array

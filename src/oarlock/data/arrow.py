"""Arrow tables, and Parquet and Arrow files."""

from pathlib import Path
from typing import Any

import numpy

from oarlock.data.table import LazyTable, Table
from oarlock.errors import DataError, FeedError
from oarlock.runtime.ragged import Ragged

__all__ = ["ArrowTable", "column_of", "read_arrow", "without_value"]

_SUFFIXES = {".parquet": "parquet", ".arrow": "feather", ".feather": "feather"}


class ArrowTable(LazyTable):
    """A `pyarrow.Table`. Fixed-size lists become arrays with an additional axis, other lists become ragged columns.

    Raises FeedError for missing values in a column that is read, and for duplicate column names.
    """

    def __init__(self, table: Any):
        super().__init__(table.column_names, table.num_rows, lambda name: column_of(table.column(name), name))


def read_arrow(path: str | Path) -> Table:
    """Read a Parquet or Arrow file into memory. Raises DataError if it cannot be read, or if pyarrow is not installed."""
    kind = _SUFFIXES[Path(path).suffix.lower()]
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise DataError(f'reading "{path}" needs pyarrow, which is not installed', hint='pip install "oarlock[arrow]"') from None
    try:
        return ArrowTable(parquet.read_table(path) if kind == "parquet" else feather.read_table(path))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines() or [type(error).__name__]
        raise DataError(
            f'"{Path(path).name}" is not a valid {"Parquet" if kind == "parquet" else "Arrow"} file', given=reason[:1]
        ) from error


def column_of(column: Any, name: str) -> "numpy.ndarray | Ragged":
    """Convert an Arrow column: numbers to an array, lists to a Ragged, other values to an object array.

    Raises FeedError for missing values.
    """
    import pyarrow

    array = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(array, pyarrow.ChunkedArray):  # without chunks
        array = pyarrow.concat_arrays(array.chunks) if array.num_chunks else pyarrow.array([], type=array.type)
    if isinstance(array.type, pyarrow.BaseExtensionType):
        array = array.storage
    _require_whole(array, name)
    types = pyarrow.types
    if types.is_fixed_size_list(array.type):
        inner = column_of(array.flatten(), name)
        return (
            numpy.reshape(inner, (len(array), array.type.list_size, *numpy.shape(inner)[1:])) if isinstance(inner, numpy.ndarray) else inner
        )
    if types.is_list(array.type) or types.is_large_list(array.type):
        splits = numpy.asarray(array.offsets).astype("int64")
        inner = column_of(array.values[splits[0] : splits[-1]], name)
        cuts = splits - splits[0]
        return Ragged(inner.values, (cuts, *inner.splits)) if isinstance(inner, Ragged) else Ragged(inner, (cuts,))
    if types.is_boolean(array.type) or types.is_integer(array.type) or types.is_floating(array.type):
        return numpy.array(array.to_numpy(zero_copy_only=False))
    return numpy.array(array.to_pylist(), dtype=object)


def _require_whole(array: Any, name: str) -> None:
    if array.null_count:
        raise without_value(name, array.is_null().to_pylist().index(True), array.null_count)


def without_value(name: str, row: int, count: int) -> FeedError:
    """Return the error for a column with `count` missing values, the first of them in `row`."""
    hint = "drop or fill these rows first"
    return FeedError(f'the column "{name}" has {count} missing value{"s" * (count > 1)}, the first in row {row}', hint=hint)

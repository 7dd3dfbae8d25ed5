"""Arrow tables, Parquet and Arrow files, pandas and polars DataFrames, and Hugging Face data sets."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy

from oarlock.data.exact_integers import exact_array
from oarlock.data.table import LazyTable, Table
from oarlock.errors import DataError, FeedError
from oarlock.runtime.ragged import Ragged

__all__ = ["ArrowTable", "HuggingFaceTable", "column_of", "read_arrow", "table_of_pandas", "table_of_polars", "without_value"]

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


class HuggingFaceTable(Table):
    """A `datasets.Dataset`. Requested rows are read from its files as Arrow, ignoring its format and transform."""

    def __init__(self, dataset: Any):
        self.dataset = dataset.with_format("arrow")
        self.names = tuple(dataset.column_names)

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        return ArrowTable(self.dataset[rows.tolist()]).whole(names)

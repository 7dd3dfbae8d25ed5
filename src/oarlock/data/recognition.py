"""Creating sources from objects of many types. A library is imported only if one of its objects is given."""

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import torch

from oarlock.data.arrow import ArrowTable, HuggingFaceTable, read_arrow, table_of_pandas, table_of_polars
from oarlock.data.csv_file import read_csv
from oarlock.data.exact_integers import exact_array
from oarlock.data.image_folder import ImageFolder
from oarlock.data.numpy_file import read_numpy
from oarlock.data.selection import Columns, SelectedTable
from oarlock.data.source import Source, Stream, Transform, count_arguments
from oarlock.data.table import ColumnTable, Table
from oarlock.errors import ArgumentError, DataError
from oarlock.out_of_memory import refuses_memory
from oarlock.runtime.ragged import Ragged

__all__ = ["FILES", "open_data", "read"]

FILES: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".npz": read_numpy,
    ".npy": read_numpy,
    ".parquet": read_arrow,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}
_CONTRACT = (
    "a dict of arrays, rows first; a pandas or polars DataFrame; an Arrow table; a Hugging Face data set; a PyTorch Dataset or DataLoader; "
    "a path; an iterable of batches, each a dict, or a function that returns one"
)


@refuses_memory
def read(
    data: object,
    *,
    columns: Columns | None = None,
    narrow: bool = False,
    shuffle: bool | None = None,
    drop_last: bool | None = None,
    transform: Transform | None = None,
    workers: int | None = None,
    prefetch: int | None = None,
) -> Source:
    """Return a source of rows or batches for `ol.train`.

        ol.data.read("table.csv", columns={"x": "*", "label": "kind"}, narrow=True)
        ol.data.read(frame, shuffle=False, transform=augment, prefetch=4)

    `data` is a dict of arrays with the rows on the first axis; a pandas or polars DataFrame, an Arrow table, a Hugging Face data set, a
    PyTorch `Dataset` or `DataLoader`; the path of a CSV, Parquet, Arrow or NumPy file, or of a folder of images with a subfolder per
    class; an iterable of batches, each a dict of arrays by input name or a tuple in the order of the inputs; or a function that returns
    such an iterable, and receives the epoch number if it takes an argument.

    `columns` selects and names columns: `{"x": ["width", "height"]}` joins two columns, float64[n, 2]; `"first:last"` selects a range of
    columns, `"*"` all columns not selected otherwise. `narrow` allows floats to be rounded to the dtype of an input, such as float64 to
    float32; floats of CSV files always may be. For the other options, see `Source`; a `DataLoader` sets its own defaults. Raises
    ArgumentError, FeedError, DataError or MissingFileError.
    """
    source = open_data(data)
    if columns is not None or narrow:
        if not isinstance(source.rows, Table):
            raise ArgumentError("columns and narrow need a table, but the data are batches", hint="use transform=function of a batch")
        source = replace(source, rows=SelectedTable(source.rows, columns, narrow=narrow))
    given = {"shuffle": shuffle, "drop_last": drop_last, "transform": transform, "workers": workers, "prefetch": prefetch}
    return replace(source, **{name: value for name, value in given.items() if value is not None})


def open_data(data: object) -> Source:
    """Return a source for any data that `read` accepts. Raises ArgumentError for other types."""
    if isinstance(data, Source):
        return data
    if isinstance(data, Table | Stream):
        return Source(data)
    if isinstance(data, Mapping):
        return Source(ColumnTable({str(name): _column(value) for name, value in data.items()}))
    if isinstance(data, str | Path):
        return Source(_open_path(Path(data)))
    table = _table_of_library(data)
    if table is not None:
        return table
    if callable(data):
        return Source(Stream(data, takes_epoch=count_arguments(data) > 0))  # type: ignore[arg-type]
    if isinstance(data, Iterable) and not isinstance(data, numpy.ndarray | torch.Tensor | Ragged | bytes) and _has_batches(data):
        return Source(Stream(data, length=len(data) if isinstance(data, Sized) else None))
    raise ArgumentError(f"a data set must be a dict of arrays or one of the types below, not {type(data).__name__}", contract=_CONTRACT)


def _column(value: object) -> "numpy.ndarray | Ragged":
    """Return rows that can be indexed by number; a list that is not rectangular becomes an object array."""
    if isinstance(value, torch.Tensor):
        return value.detach()  # type: ignore[return-value]  indexed like an array
    if isinstance(value, Ragged | numpy.ndarray):
        return value
    try:
        return exact_array(value)
    except ValueError:  # rows of different lengths
        items = numpy.empty(len(value), dtype=object)  # type: ignore[arg-type]
        items[:] = value  # type: ignore[call-overload]
        return items


def _has_batches(data: Iterable[Any]) -> bool:
    """Return whether the first item of a list is a batch. For other iterables this is unknown before reading, and True."""
    return not isinstance(data, list | tuple) or (len(data) > 0 and isinstance(data[0], Mapping | tuple | list))


def _table_of_library(data: object) -> Source | None:
    """Return the source for an object of a known library, or None."""
    for kind in type(data).__mro__:
        module, name = kind.__module__.partition(".")[0], kind.__name__
        if (module, name) == ("pandas", "DataFrame"):
            return Source(table_of_pandas(data))
        if (module, name) == ("polars", "DataFrame"):
            return Source(table_of_polars(data))
        if (module, name) == ("pyarrow", "Table"):
            return Source(ArrowTable(data))
        if (module, name) == ("datasets", "Dataset"):
            return Source(HuggingFaceTable(data))
        if kind.__module__.startswith("torch.utils.data") and name in ("Dataset", "DataLoader"):
            from oarlock.data.torch_data import source_of_dataset, source_of_loader

            return source_of_loader(data) if name == "DataLoader" else source_of_dataset(data)  # type: ignore[arg-type]
    return None


def _open_path(path: Path) -> Table:
    reader = FILES.get(path.suffix.lower())
    if reader is None and path.is_dir():
        return ImageFolder(path)
    if reader is None:
        raise DataError(
            f'"{path}" is not a data set: its name does not end with one of {", ".join(FILES)}', hint="or give a folder of images"
        )
    return reader(path)

"""The source in what is given, by what it is. No library is imported before something of it is given."""

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import torch

from oarlock.data.arrow import ArrowTable, read_arrow
from oarlock.data.csv_file import read_csv
from oarlock.data.exact_integers import exact_array
from oarlock.data.frames import table_of_pandas, table_of_polars
from oarlock.data.hugging_face import HuggingFaceTable
from oarlock.data.image_folder import ImageFolder
from oarlock.data.numpy_file import read_numpy
from oarlock.data.selection import Columns, SelectedTable
from oarlock.data.source import Source, Transform, count_arguments
from oarlock.data.stream import Stream
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
    "a dict of arrays, rows first; a frame of pandas or polars; a table of Arrow; a data set of Hugging Face; a Dataset or DataLoader of "
    "PyTorch; a path; an iterable of batches, each a dict, or a function that makes one"
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
    """A source of rows or batches for `ol.train`: what there is, and how it is read.

        ol.data.read("table.csv", columns={"x": "*", "label": "kind"}, narrow=True)
        ol.data.read(frame, shuffle=False, transform=augment, prefetch=4)

    `data` is a dict of arrays, rows first; a frame of pandas or polars, a table of Arrow, a data set of Hugging Face, a `Dataset` or
    `DataLoader` of PyTorch; a path of a file of CSV, Parquet, Arrow or NumPy, or of a folder of images with a folder for each class; an
    iterable of batches, each a dict of arrays by the names of inputs or a tuple in their order, or a function that makes one, of the
    epoch if it takes an argument.

    `columns` picks columns and says what they are called: `{"x": ["width", "height"]}` puts two side by side, float64[n, 2];
    `"first:last"` names all from one to another, `"*"` those that nothing else names. `narrow` lets floats be rounded to the dtype of an
    input, float64 to float32 for instance; those of a CSV file always are. The rest is told by `Source`; a `DataLoader` says its own,
    unless told otherwise. Raises ArgumentError, FeedError, DataError or MissingFileError.
    """
    source = open_data(data)
    if columns is not None or narrow:
        if not isinstance(source.rows, Table):
            raise ArgumentError(
                "columns and narrow are for tables; what is given is read batch by batch", hint="transform=function of a batch"
            )
        source = replace(source, rows=SelectedTable(source.rows, columns, narrow=narrow))
    given = {"shuffle": shuffle, "drop_last": drop_last, "transform": transform, "workers": workers, "prefetch": prefetch}
    return replace(source, **{name: value for name, value in given.items() if value is not None})


def open_data(data: object) -> Source:
    """The source in `data`, as `read` takes it. Raises ArgumentError for what is none."""
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
    raise ArgumentError(f"a data set is a dict of arrays, not {type(data).__name__}", contract=_CONTRACT)


def _column(value: object) -> "numpy.ndarray | Ragged":
    """Rows that can be picked by number; of a list that is no array, the items."""
    if isinstance(value, torch.Tensor):
        return value.detach()  # type: ignore[return-value]  indexed as an array is
    if isinstance(value, Ragged | numpy.ndarray):
        return value
    try:
        return exact_array(value)
    except ValueError:  # rows of different lengths
        items = numpy.empty(len(value), dtype=object)  # type: ignore[arg-type]
        items[:] = value  # type: ignore[call-overload]
        return items


def _has_batches(data: Iterable[Any]) -> bool:
    """Whether the first item of a list is a batch; of another iterable nobody can know before it is read."""
    return not isinstance(data, list | tuple) or (len(data) > 0 and isinstance(data[0], Mapping | tuple | list))


def _table_of_library(data: object) -> Source | None:
    """The source in an object of a library; None for another."""
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
        raise DataError(f'"{path}" is no data set: its name ends with none of {", ".join(FILES)}', hint="or give a folder of images")
    return reader(path)

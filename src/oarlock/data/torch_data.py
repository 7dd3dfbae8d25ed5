"""PyTorch `Dataset` and `DataLoader` objects as sources."""

from collections.abc import Callable, Collection, Mapping, Sized
from typing import Any

import numpy
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, default_collate

from oarlock.data.source import Source, Stream
from oarlock.data.table import Table
from oarlock.errors import ArgumentError

__all__ = ["DatasetTable", "source_of_dataset", "source_of_loader"]


class DatasetTable(Table):
    """A map-style `Dataset`. A row is a dict by column, or a tuple in the order of the program's inputs."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any] = default_collate):
        self.dataset, self.collate = dataset, collate
        first = collate([dataset[0]]) if len(dataset) else {}
        self.names = tuple(map(str, first)) if isinstance(first, Mapping) else ()
        self.has_names = isinstance(first, Mapping)

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> Any:
        """See `Table.take`; rows without column names give a list of columns."""
        return self.collate([self.dataset[int(row)] for row in rows])


def source_of_dataset(dataset: Dataset[Any]) -> Source:
    """Return a map-style `Dataset` as a source of rows. Raises ArgumentError for an iterable one, or one without a length."""
    if isinstance(dataset, IterableDataset):
        raise ArgumentError(
            f"{type(dataset).__name__} yields single rows", hint="make batches with torch.utils.data.DataLoader(dataset, batch_size=32)"
        )
    if not isinstance(dataset, Sized):
        raise ArgumentError(f"{type(dataset).__name__} has no length", hint="define __len__, or pass a DataLoader")
    return Source(DatasetTable(dataset))


def source_of_loader(loader: DataLoader[Any]) -> Source:
    """Return a loader as a source: its rows in Oarlock's own order if it reads in sequence or shuffled, otherwise its batches as a stream.

    A stream must yield the same batches when it is read again for a resumed run: give its sampler a seeded generator.
    """
    plain = type(loader.batch_sampler) is BatchSampler and type(loader.sampler) in (RandomSampler, SequentialSampler)
    shuffled = isinstance(loader.sampler, RandomSampler)
    whole = not shuffled or not (loader.sampler.replacement or loader.sampler.num_samples != len(loader.dataset))  # type: ignore[arg-type, union-attr]
    if plain and whole and isinstance(loader.dataset, Sized):
        table = DatasetTable(loader.dataset, loader.collate_fn)
        return Source(table, shuffle=shuffled, drop_last=loader.drop_last, workers=loader.num_workers, batch_size=loader.batch_size)
    try:
        length = len(loader)
    except TypeError:
        length = None
    return Source(Stream(loader, length=length))

"""Minibatches of a table, in an order that depends on the seed and the epoch, or of a stream, which cannot be seeked."""

import contextlib
import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy
import torch

from oarlock.data.program_inputs import Feed, ProgramInputs, require_alike
from oarlock.data.recognition import open_data
from oarlock.data.source import Source, Stream
from oarlock.data.table import ColumnTable, LazyTable, Table
from oarlock.errors import FeedError
from oarlock.ir.program import Program
from oarlock.runtime import random
from oarlock.runtime.feed import check_feed
from oarlock.runtime.place import CPUPlace
from oarlock.runtime.value import describe_value
from oarlock.training.reading_ahead import prefetch_in_processes, prefetch_in_thread

__all__ = ["Batch", "Batches", "Replay", "feed_of", "one_epoch", "open_batches", "part_of"]

_AT_ONCE = 2**21  # bytes of batches to gather at once: code that runs rarely is not cached, and slow
_LINE = 64  # bytes: alignment affects rounding, so it must not depend on the first step of a run


def part_of(rows: int, worker: tuple[int, int]) -> slice:
    """Return the rows of one worker. The sizes of the parts differ by at most one."""
    index, count = worker
    return slice(rows * index // count, rows * (index + 1) // count)


class Batch(NamedTuple):
    """The feed of one step: minibatch `number` of `epoch`, both counted from 0. `is_last` marks the last of its epoch.

    `rows` counts the rows of all workers, even if the feed holds a part of them; it is 1 if the inputs store their own values.
    """

    epoch: int
    number: int
    is_last: bool
    feed: "Feed | dict[str, torch.Tensor]"
    rows: int


@dataclass(frozen=True)
class Batches:
    """The rows of a table, divided into minibatches; the last one of an epoch may be smaller.

    A batch depends only on the seed, the epoch and the batch size, so a run can resume at any step. `columns` holds in-memory data,
    validated before the first step; lazily loaded rows are validated batch by batch.
    """

    source: Source
    inputs: ProgramInputs
    rows: int
    batch_size: int
    seed: int
    columns: Feed | None
    worker: tuple[int, int] = (0, 1)
    """The index of this worker and the number of workers; each takes its part of every minibatch."""

    @classmethod
    def of(cls, data: object, program: Program, batch_size: int, *, shuffle: bool = True, worker: tuple[int, int] = (0, 1)) -> "Batches":
        """Return the minibatches of `data`, a table, for `program`.

        Raises FeedError for a missing or invalid column, or if there are no rows.
        """
        inputs = ProgramInputs.of(program)
        columns = inputs.feed(data) if isinstance(data, Mapping) else None
        source = open_data(data if columns is None else ColumnTable(columns))
        source = source if shuffle else replace(source, shuffle=False, drop_last=False)
        assert isinstance(source.rows, Table)
        table = source.rows
        if columns is None and source.transform is None and table.names:
            inputs.require(table.names)
            if table.is_in_memory:
                columns = inputs.feed(table.whole(inputs.wanted), table.numbers, rounds=table.rounds)
        elif isinstance(table, ColumnTable) and not isinstance(table, LazyTable):
            require_alike(table.columns)
        rows = len(table) if columns is None else len(next(iter(columns.values()))) if columns else 1
        if not rows:
            given = [f'"{name}" has 0 rows' for name in columns or ()]
            raise FeedError("the data set has no rows", given=given)
        if columns and worker[1] == 1:  # check shapes early; each step checks its own feed again
            first = numpy.arange(min(rows, batch_size))
            check_feed(program, {name: column[first] for name, column in columns.items()}, set(), CPUPlace())
        return cls(source, inputs, rows, batch_size, program.seed, columns, worker)

    @property
    def per_epoch(self) -> int:
        """The number of minibatches in one epoch."""
        return max(1, self.rows // self.batch_size) if self.source.drop_last else math.ceil(self.rows / self.batch_size)

    def order(self, epoch: int) -> numpy.ndarray:
        """Return the order of the rows in an epoch, counted from 0: int64[rows]."""
        if not self.source.shuffle:
            return numpy.arange(self.rows)
        return random.permutation(self.rows, random.key_of(self.seed, "order", epoch))

    def batch(self, order: numpy.ndarray, number: int, epoch: int = 0) -> Feed:
        """Return minibatch `number`, counted from 0, of an epoch in `order`."""
        chosen = self._chosen(order, number)
        if self.columns is not None:
            return {name: column[chosen] for name, column in self.columns.items()}
        assert isinstance(self.source.rows, Table)
        return self._fed(self.source.rows.take(chosen, self._wanted), chosen, epoch, number)

    def after(self, step: int) -> Generator[Batch, None, None]:
        """Yield the minibatches that follow `step` steps, epoch after epoch without end."""
        if self.source.workers and self.columns is None:
            return self._by_workers(step)
        return prefetch_in_thread(self._in_bulk(step) if self._gathered else self._by_one(step), self._ahead)

    @property
    def _wanted(self) -> list[str] | None:
        """The columns to read: the inputs of the program, or None (all) if there is a transform."""
        return self.inputs.wanted if self.source.transform is None else None

    @property
    def _ahead(self) -> int:
        return 0 if self.columns is not None and self.source.prefetch is None else self.source.ahead

    def _by_one(self, step: int) -> Generator[Batch, None, None]:
        for epoch, first in self._epochs(step):
            order = self.order(epoch)
            for number in range(first, self.per_epoch):
                yield self._batch(epoch, number, self.batch(order, number, epoch))

    def _in_bulk(self, step: int) -> Generator[Batch, None, None]:
        """Yield the batches of `_by_one`, gathered many at once, also across short epochs.

        It gathers no more ahead than one epoch or the number of batches taken so far, because the run may be short.
        """
        made: list[Batch] = []
        taken = 0
        for epoch, first in self._epochs(step):
            order = self.order(epoch)
            for number in range(first, self.per_epoch, self._gathered):
                feeds = self._gather(order, number, self._gathered)
                made += [self._batch(epoch, number + ahead, feed) for ahead, feed in enumerate(feeds)]
                if len(made) >= min(self._gathered, taken):
                    yield from made
                    taken += len(made)
                    made = []

    def _batch(self, epoch: int, number: int, feed: "Feed | dict[str, torch.Tensor]") -> Batch:
        rows = min(self.batch_size, self.rows - number * self.batch_size)
        return Batch(epoch, number, number + 1 == self.per_epoch, feed, rows)

    @cached_property
    def _gathered(self) -> int:
        """The number of batches to gather at once as tensors that begin at a cache line; 0 to read batches one by one."""
        columns = [column for column in (self.columns or {}).values() if isinstance(column, numpy.ndarray) and column.ndim and column.size]
        if not columns or len(columns) < len(self.columns or {}) or self.worker[1] > 1:
            return 0
        sizes = [self.batch_size * column[:1].nbytes for column in columns]
        return 1 if any(size % _LINE for size in sizes) else max(1, _AT_ONCE // sum(sizes))

    @cached_property
    def _dtypes(self) -> list[torch.dtype]:
        """The tensor dtypes of the columns that are arrays."""
        return [torch.from_numpy(column[:0].copy()).dtype for column in (self.columns or {}).values() if isinstance(column, numpy.ndarray)]

    def _gather(self, order: numpy.ndarray, number: int, count: int) -> list[dict[str, torch.Tensor]]:
        """Return the feeds of `count` minibatches from `number` on, or fewer at the end of the epoch."""
        rows = order[number * self.batch_size : min(number + count, self.per_epoch) * self.batch_size]
        parts = []
        for column, dtype in zip((self.columns or {}).values(), self._dtypes, strict=True):
            assert isinstance(column, numpy.ndarray)
            made = torch.empty((len(rows), *column.shape[1:]), dtype=dtype)
            numpy.take(column, rows, axis=0, out=made.numpy(), mode="clip")  # faster: "clip" skips bounds checks
            parts.append(made.split(self.batch_size))
        return [dict(zip(self.columns or {}, each, strict=True)) for each in zip(*parts, strict=True)]

    def _by_workers(self, step: int) -> Generator[Batch, None, None]:
        assert isinstance(self.source.rows, Table)
        for epoch, first in self._epochs(step):
            order = self.order(epoch)
            chosen = [self._chosen(order, number) for number in range(first, self.per_epoch)]
            read = prefetch_in_processes(self.source.rows, chosen, self.source.workers, max(1, self.source.ahead))
            for number, (rows, columns) in enumerate(zip(chosen, read, strict=True), start=first):
                yield self._batch(epoch, number, self._fed(columns, rows, epoch, number))

    def _epochs(self, step: int) -> Iterator[tuple[int, int]]:
        """Yield each epoch that is not finished after `step` steps, with the first of its remaining batches."""
        epoch, first = divmod(step, self.per_epoch)
        while True:
            yield epoch, first
            epoch, first = epoch + 1, 0

    def _chosen(self, order: numpy.ndarray, number: int) -> numpy.ndarray:
        whole = order[number * self.batch_size : (number + 1) * self.batch_size]
        return whole[part_of(len(whole), self.worker)]

    def _fed(self, columns: object, rows: numpy.ndarray, epoch: int, number: int) -> Feed:
        table = self.source.rows
        assert isinstance(table, Table)
        rows = rows if table.numbers is None else table.numbers[rows]
        return feed_of(columns, self.source, self.inputs, self.seed, epoch, number, rows=rows, rounds=table.rounds)


def feed_of(
    batch: object,
    source: Source,
    inputs: ProgramInputs,
    seed: int,
    epoch: int,
    number: int,
    *,
    rows: numpy.ndarray | None = None,
    rounds: bool = False,
) -> Feed:
    """Return the feed of batch `number` of an epoch. Raises FeedError if the transform returns anything but columns by name.

    A transform of two arguments gets a random generator, seeded by the program's `seed`, the epoch and the batch.
    """
    if source.transform is not None:
        batch = dict(batch) if isinstance(batch, Mapping) else batch
        generator = [numpy.random.default_rng(random.key_of(seed, "transform", epoch, number))] if source.draws else []
        batch = source.transform(batch, *generator)
        if not isinstance(batch, Mapping):
            raise FeedError(f"transform returned {describe_value(batch)}, not a dict of input names and columns")
    return inputs.feed(batch, rows, rounds=rounds)


@dataclass(frozen=True)
class Replay:
    """The batches of a stream. Their number per epoch is known if the stream declares it, or after the first epoch."""

    source: Source
    stream: Stream
    inputs: ProgramInputs
    seed: int
    worker: tuple[int, int] = (0, 1)

    @property
    def per_epoch(self) -> int | None:
        """The number of batches per epoch, if known."""
        return self.stream.length

    def after(self, step: int) -> Generator[Batch, None, None]:
        """Yield the batches that follow `step` steps, epoch after epoch without end. Raises FeedError for an empty epoch."""
        return prefetch_in_thread(self._one_by_one(step), self.source.ahead)

    def _one_by_one(self, step: int) -> Generator[Batch, None, None]:
        # Only a stream that is a function of the epoch can start at a later epoch.
        epoch, behind = divmod(step, self.per_epoch) if self.per_epoch and self.stream.takes_epoch else (0, step)
        while True:
            batches, number = self.stream.batches(epoch), 0
            current = next(batches, _NONE)
            if current is _NONE:
                raise FeedError(f"the data set has no batches in epoch {epoch + 1}")
            while current is not _NONE:
                following = next(batches, _NONE)
                if behind:
                    behind -= 1
                else:
                    feed = feed_of(current, self.source, self.inputs, self.seed, epoch, number)
                    rows = len(next(iter(feed.values()))) if feed else 1
                    yield self._own(Batch(epoch, number, following is _NONE, feed, rows))
                current, number = following, number + 1
            epoch += 1

    def _own(self, batch: Batch) -> Batch:
        """Return the rows of this worker."""
        if self.worker[1] == 1:
            return batch
        part = part_of(batch.rows, self.worker)
        return batch._replace(feed={name: column[part] for name, column in batch.feed.items()})


_NONE = object()


def open_batches(
    data: "Mapping[str, object] | Source", program: Program, batch_size: int, *, shuffle: bool = True, worker: tuple[int, int] = (0, 1)
) -> "Batches | Replay":
    """Return the minibatches of `data` for `program`: of `batch_size` rows, in order without `shuffle`; a stream has its own batches.

    `worker` is the index of this worker and the number of workers; each gets its part of every minibatch.
    """
    if isinstance(data, Source) and isinstance(data.rows, Stream):
        return Replay(data, data.rows, ProgramInputs.of(program), program.seed, worker)
    return Batches.of(data, program, batch_size, shuffle=shuffle, worker=worker)


def one_epoch(batches: "Batches | Replay") -> Generator[Batch, None, None]:
    """Yield the batches of the first epoch."""
    with contextlib.closing(batches.after(0)) as found:
        for batch in found:
            yield batch
            if batch.is_last:
                return

"""Sources: rows or batches, with the options for reading them."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from oarlock.data.table import Table
from oarlock.errors import ArgumentError, FeedError
from oarlock.registry.range_check import require_count

__all__ = ["Source", "Stream", "Transform", "count_arguments"]


class Stream:
    """A sequence of batches, each a dict of arrays by input name, or a tuple in the order of the inputs.

    `source` is read from its beginning in each epoch. It is an iterable that can be iterated repeatedly; a function that returns one for
    each epoch, and receives the epoch number, starting at 0, if it takes an argument; or an iterator, which can be read only once. A
    stream cannot be seeked: a resumed run reads and discards the batches before its step. `length` is the number of batches per epoch, if
    known.
    """

    def __init__(self, source: Iterable[object] | Callable[..., Iterable[object]], *, length: int | None = None, takes_epoch: bool = False):
        self.source = source
        self.length = length
        self.takes_epoch = takes_epoch
        self._read = False

    def batches(self, epoch: int) -> Iterator[object]:
        """Return the batches of an epoch, counted from 0. Raises FeedError if they can be read only once, and were already read."""
        if callable(self.source):
            return iter(self.source(epoch) if self.takes_epoch else self.source())
        if isinstance(self.source, Iterator):
            if self._read:
                raise FeedError(
                    f"the {type(self.source).__name__} of batches can be read only once, but epoch {epoch + 1} needs it again",
                    hint="pass a function that creates it, def batches(epoch): yield ..., or train for one epoch",
                )
            self._read = True
        return iter(self.source)


Transform = Callable[..., dict[str, object]]
"""A function that maps a batch (columns by name) to a batch. If it takes two arguments, the second is a `numpy.random.Generator`."""


def count_arguments(function: Callable[..., object]) -> int:
    """Return the number of required positional arguments of a function, or 0 if it is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) and item.default is item.empty for item in parameters)


@dataclass(frozen=True)
class Source:
    """Rows or batches, with the options for reading them. Raises ArgumentError.

    `shuffle`: read rows in a random order, which depends only on the program's seed and the epoch; otherwise in their own order.
    `drop_last`: omit the last batch of an epoch if it has fewer rows than the others.
    `transform`: a function of each batch, applied before it is fed. If it takes two arguments, the second is a `numpy.random.Generator`,
    seeded by the program's seed, the epoch and the position of the batch, so a resumed run draws the same numbers.
    `workers`: the number of processes that prefetch batches (PyTorch's `DataLoader`); 0 reads in this process.
    `prefetch`: the number of batches that a thread, or each worker, reads ahead. Default: 2 for rows that are read from files, otherwise
    0.
    `batch_size`: the number of rows per batch, if the source sets it.
    """

    rows: Table | Stream
    shuffle: bool = True
    drop_last: bool = False
    transform: Transform | None = None
    workers: int = 0
    prefetch: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "prefetch"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), least=0, most=1024)
        if self.transform is not None and not callable(self.transform):
            raise ArgumentError(f"transform must be a function of a batch, not {self.transform!r:.60}")
        if self.workers and isinstance(self.rows, Stream):
            raise ArgumentError(
                "a stream is read in order, so several processes cannot read it", hint="use workers=0, with prefetch=2 to read ahead"
            )

    @functools.cached_property
    def draws(self) -> bool:
        """Whether the transform takes a random generator."""
        return self.transform is not None and count_arguments(self.transform) == 2

    @property
    def ahead(self) -> int:
        """The number of batches to prefetch."""
        return self.prefetch if self.prefetch is not None else 0 if isinstance(self.rows, Stream) or self.rows.is_in_memory else 2

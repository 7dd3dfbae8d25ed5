"""Sources: rows or batches, with the options for reading them."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from oarlock.data.stream import Stream
from oarlock.data.table import Table
from oarlock.errors import ArgumentError
from oarlock.registry.range_check import require_count

__all__ = ["Source", "Transform", "count_arguments"]

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
        """The number of batches to read ahead."""
        return self.prefetch if self.prefetch is not None else 0 if isinstance(self.rows, Stream) or self.rows.is_in_memory else 2

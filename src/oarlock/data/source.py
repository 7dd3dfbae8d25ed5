"""Source: rows or batches, and how a run reads them."""

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
"""A function from a batch, columns by name, to a batch; where it takes two arguments, the second is a `numpy.random.Generator`."""


def count_arguments(function: Callable[..., object]) -> int:
    """How many arguments a function must be given by their places; 0 where that cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) and item.default is item.empty for item in parameters)


@dataclass(frozen=True)
class Source:
    """Rows or batches, and how a run reads them. Raises ArgumentError.

    `shuffle`: rows in an order that the seed of the program and the epoch tell, anew in each epoch; otherwise as they stand.
    `drop_last`: without the batch at the end of an epoch that has fewer rows than the others.
    `transform`: a function of each batch, before it is fed. Where it takes two arguments, the second is a `numpy.random.Generator`, whose
    numbers follow from the seed, the epoch and the place of the batch, so a run that is taken up draws the same.
    `workers`: so many processes read batches ahead (PyTorch's `DataLoader`); 0 reads in this one.
    `prefetch`: so many batches are read ahead by a thread, or by each worker; without it 2 where rows are read from files, otherwise none.
    `batch_size`: rows in a batch, where the source says so itself.
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
            raise ArgumentError(f"transform is a function of a batch, not {self.transform!r:.60}")
        if self.workers and isinstance(self.rows, Stream):
            raise ArgumentError(
                "a stream is read in its order, so processes cannot share it", hint="workers=0, or prefetch=2, which reads ahead"
            )

    @functools.cached_property
    def draws(self) -> bool:
        """Whether the transform takes a generator of random numbers."""
        return self.transform is not None and count_arguments(self.transform) == 2

    @property
    def ahead(self) -> int:
        """The batches that are read ahead."""
        return self.prefetch if self.prefetch is not None else 0 if isinstance(self.rows, Stream) or self.rows.is_in_memory else 2

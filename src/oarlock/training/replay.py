"""Batches of a stream, which cannot be seeked: a resumed run reads and discards the batches before its step."""

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from oarlock.data.program_inputs import ProgramInputs
from oarlock.data.source import Source
from oarlock.data.stream import Stream
from oarlock.errors import FeedError
from oarlock.ir.program import Program
from oarlock.training.batches import Batch, Batches, part_of
from oarlock.training.reading_ahead import by_thread
from oarlock.training.transforming import feed_of

__all__ = ["Replay", "one_epoch", "open_batches"]


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
        return by_thread(self._one_by_one(step), self.source.ahead)

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

"""Streams: batches in a fixed order."""

from collections.abc import Callable, Iterable, Iterator

from oarlock.errors import FeedError

__all__ = ["Stream"]


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

"""Stream: batches in an order of their own."""

from collections.abc import Callable, Iterable, Iterator

from oarlock.errors import FeedError

__all__ = ["Stream"]


class Stream:
    """Batches that come one after another, each a dict of arrays by the names of inputs, or a tuple in the order of the inputs.

    `source` is read from its beginning in each epoch: an iterable that can be read again; a function, which is called for each epoch and,
    where it takes an argument, is told the epoch, from 0; or an iterator, which can be read once. Nobody can begin in its middle: to get
    back to a place, a run reads what lies before it once more, and drops it. `length` is the number of batches in an epoch, if it is known.
    """

    def __init__(self, source: Iterable[object] | Callable[..., Iterable[object]], *, length: int | None = None, takes_epoch: bool = False):
        self.source = source
        self.length = length
        self.takes_epoch = takes_epoch
        self._read = False

    def batches(self, epoch: int) -> Iterator[object]:
        """The batches of an epoch, from 0. Raises FeedError where they can be read once, and were."""
        if callable(self.source):
            return iter(self.source(epoch) if self.takes_epoch else self.source())
        if isinstance(self.source, Iterator):
            if self._read:
                raise FeedError(
                    f"the batches come from a {type(self.source).__name__}, which can be read once, and epoch {epoch + 1} needs them again",
                    hint="give a function that makes them, def batches(epoch): yield ...; or one epoch alone",
                )
            self._read = True
        return iter(self.source)

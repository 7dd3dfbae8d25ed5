"""The bytes of requests and answers in memory: their sum over all connections, and its limit."""

from oarlock.errors import LimitError
from oarlock.serving.refusal import Refusal

__all__ = ["HeldBytes", "Share"]


class HeldBytes:
    """A sum of bytes, `total`, which is at most `largest`. Each request has a share of it."""

    def __init__(self, largest: int):
        self.largest = largest
        self.total = 0

    def share(self) -> "Share":
        """A share of no bytes as yet."""
        return Share(self)


class Share:
    """The bytes that one request holds: those of its body, then of its tensors, then of its answer."""

    def __init__(self, whole: HeldBytes):
        self._whole = whole
        self._size = 0

    def hold(self, size: int) -> None:
        """Hold so many bytes in place of those before. Raises Refusal, by status 429, if all requests would hold more than allowed."""
        whole, more = self._whole, size - self._size
        if more > 0 and whole.total + more > whole.largest:
            error = LimitError(f"more than {whole.largest:,} bytes of requests and answers at once", hint="ask again in a moment")
            raise Refusal(429, error, retry=1, limit="held_bytes")
        whole.total += more
        self._size = size

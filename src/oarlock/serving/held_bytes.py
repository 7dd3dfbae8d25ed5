"""The memory used by requests and answers of all connections, and its limit."""

from oarlock.errors import LimitError
from oarlock.serving.refusal import Refusal

__all__ = ["HeldBytes", "Share"]


class HeldBytes:
    """A total of bytes that is limited to `largest`. Each request has a share of it."""

    def __init__(self, largest: int):
        self.largest = largest
        self.total = 0

    def share(self) -> "Share":
        """Create an empty share."""
        return Share(self)


class Share:
    """The bytes used by one request: of its body, then its tensors, then its answer."""

    def __init__(self, whole: HeldBytes):
        self._whole = whole
        self._size = 0

    def hold(self, size: int) -> None:
        """Change the size of the share. Raises Refusal with status 429 if the total would exceed the limit."""
        whole, more = self._whole, size - self._size
        if more > 0 and whole.total + more > whole.largest:
            error = LimitError(f"requests and answers in memory exceed {whole.largest:,} bytes", hint="retry in a moment")
            raise Refusal(429, error, retry=1, limit="held_bytes")
        whole.total += more
        self._size = size

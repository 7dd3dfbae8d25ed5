"""The limits of a server that untrusted clients may use, and the memory counted against one of them."""

from dataclasses import dataclass

from oarlock.errors import LimitError
from oarlock.serving.refusal import Refusal

__all__ = ["HeldBytes", "ServingLimits", "Share"]


@dataclass(frozen=True)
class ServingLimits:
    """Limits of a server; those that depend on the model are options of `oarlock serve`.

    Per request: `body_bytes` of the body; `header_bytes` of the head; `seconds` from head to answer, including `body_seconds` to receive
    the body; `json_values` numbers, strings and lists in the JSON; `rows` of each tensor, also in the answer; `answer_bytes` of the answer;
    `run_bytes` of simultaneously live values in the run. In total: `held_bytes` of requests and answers in memory, `queue` waiting
    requests, `connections` open connections.

    A connection has `header_seconds` to send a request head, `idle_seconds` between requests, and `write_seconds` to read an answer. Up to
    `batch_rows` rows of several requests run together; a request waits up to `batch_seconds` for others that are being received. A stopping
    server has `stop_seconds` to answer accepted requests.
    """

    body_bytes: int = 16 * 2**20
    header_bytes: int = 16 * 2**10
    json_values: int = 1_000_000
    rows: int = 1_000_000
    answer_bytes: int = 64 * 2**20
    run_bytes: int = 256 * 2**20
    held_bytes: int = 192 * 2**20
    queue: int = 64
    connections: int = 512
    seconds: float = 30.0
    body_seconds: float = 20.0
    header_seconds: float = 10.0
    idle_seconds: float = 60.0
    write_seconds: float = 30.0
    stop_seconds: float = 35.0
    batch_rows: int = 32
    batch_seconds: float = 0.002


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

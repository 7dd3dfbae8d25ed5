"""How much a server takes on: what a stranger on the network may use of it."""

from dataclasses import dataclass

__all__ = ["ServingLimits"]


@dataclass(frozen=True)
class ServingLimits:
    """Upper bounds of a server; `oarlock serve` has an option for those that depend on the model.

    Of one request: `body_bytes` of its body, `header_bytes` of what stands before it; `seconds` from its head to its answer, of which
    `body_seconds` for its body; `json_values` numbers, texts and lists in its JSON; `rows` of a tensor in it, and of an answer;
    `answer_bytes` of an answer, and `run_bytes` of the values that its run has in memory at once. Of all of them: `held_bytes` of requests
    and answers at once, `queue` requests that wait to be run, `connections`.

    A connection has `header_seconds` for the head of a request, `idle_seconds` between two of them, and `write_seconds` to take what is
    written to it. `batch_rows` rows of several requests are run at once, and one waits `batch_seconds` for others that are being read.
    A server that is stopped has `stop_seconds` to answer what it has accepted.
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

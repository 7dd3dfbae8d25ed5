"""The answer of the child process of `--untrusted` to its parent: a head of JSON, one line, then text, then the bytes of a file.

The head says how long both are, so that the parent takes no more than that, and none of it before it knows. Nothing heavy is imported.
"""

import json
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple

__all__ = ["Answer", "read_answer", "write_answer"]

_HEAD_BYTES = 2**18  # of an error of ours no field has more than a few KiB; parsed, JSON takes twenty times its size at most


class Answer(NamedTuple):
    """An answer: `error`, the fields of one of our errors, where the verb raised; else its `status` from 0 to 255, `text` and `output`.

    `network`: whether the child had the network of its parent.
    """

    error: Mapping[str, object] | None
    status: int
    network: bool
    text: str
    output: bytes


def write_answer(
    file: BinaryIO, *, status: int = 0, network: bool, text: str = "", output: bytes | memoryview = b"", error: object = None
) -> None:
    """Write an answer. Only the first 255 of statuses are told apart."""
    said = text.encode(errors="backslashreplace")
    head = {"error": error, "status": min(max(status, 0), 255), "network": network, "text": len(said), "output": len(output)}
    file.write(json.dumps(head, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
    file.write(said)
    file.write(output)
    file.flush()


def read_answer(read_line: Callable[[int], bytes], read: Callable[[int], bytes], *, allow: Callable[[str, int], object]) -> Answer:
    """Read an answer, which whoever wrote it may have made up. `allow` is asked for each length first, by name, and may raise.

    Raises ValueError for one that is none of ours, and what the readers raise.
    """
    # Decoded here: json would look for a mark at its beginning, and import what reads such text.
    head = json.loads(read_line(_HEAD_BYTES).decode("utf-8"))
    if not isinstance(head, dict):
        raise ValueError("the head is no object")
    error, status, network = head.get("error"), head.get("status"), head.get("network")
    if not (error is None or isinstance(error, dict)) or type(status) is not int or not 0 <= status <= 255 or type(network) is not bool:
        raise ValueError("the head has other fields")
    lengths = {name: head.get(name) for name in ("text", "output")}
    for name, length in lengths.items():
        if type(length) is not int or length < 0:
            raise ValueError(f"{name} has no length")
        allow(name, length)
    text, output = (read(length) for length in lengths.values())  # type: ignore[arg-type]
    return Answer(error, status, network, text.decode("utf-8"), output)

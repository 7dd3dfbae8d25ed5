"""The answer of the `--untrusted` child process to its parent: one line of JSON (the head), then text, then the bytes of a file.

The head gives the lengths of both, so the parent can check them before it reads further. Imports nothing heavy.
"""

import json
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple

__all__ = ["Answer", "read_answer", "write_answer"]

_HEAD_BYTES = 2**18  # the fields of our errors have a few KiB at most; parsing JSON takes up to twenty times its size


class Answer(NamedTuple):
    """The answer of the child process.

    `error` holds the fields of an `OarlockError` that the verb raised; otherwise `status` (0 to 255), `text` and `output` are its result.
    `network`: whether the child shared the network of its parent.
    """

    error: Mapping[str, object] | None
    status: int
    network: bool
    text: str
    output: bytes


def write_answer(
    file: BinaryIO, *, status: int = 0, network: bool, text: str = "", output: bytes | memoryview = b"", error: object = None
) -> None:
    """Write an answer. A status above 255 is written as 255."""
    encoded = text.encode(errors="backslashreplace")
    head = {"error": error, "status": min(max(status, 0), 255), "network": network, "text": len(encoded), "output": len(output)}
    file.write(json.dumps(head, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
    file.write(encoded)
    file.write(output)
    file.flush()


def read_answer(read_line: Callable[[int], bytes], read: Callable[[int], bytes], *, allow: Callable[[str, int], object]) -> Answer:
    """Read an untrusted answer. `allow(name, length)` is called before each part is read, and may raise.

    Raises ValueError if the answer is malformed, and anything that the readers raise.
    """
    # Decoded here: json would import an encoding detector for bytes.
    head = json.loads(read_line(_HEAD_BYTES).decode("utf-8"))
    if not isinstance(head, dict):
        raise ValueError("the head is not an object")
    error, status, network = head.get("error"), head.get("status"), head.get("network")
    if not (error is None or isinstance(error, dict)) or type(status) is not int or not 0 <= status <= 255 or type(network) is not bool:
        raise ValueError("the head has wrong fields")
    lengths = {name: head.get(name) for name in ("text", "output")}
    for name, length in lengths.items():
        if type(length) is not int or length < 0:
            raise ValueError(f"{name} has no valid length")
        allow(name, length)
    text, output = (read(length) for length in lengths.values())  # type: ignore[arg-type]
    return Answer(error, status, network, text.decode("utf-8"), output)

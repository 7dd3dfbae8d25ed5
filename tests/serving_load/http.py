"""As much of HTTP as clients need that look at single bytes."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "head", "read_answer"]


@dataclass(frozen=True)
class Answer:
    """An answer that has come whole."""

    status: int
    closes: bool
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def head(path: str, length: int) -> bytes:
    """The head of a request with a body."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


async def read_answer(reader: asyncio.StreamReader) -> Answer | None:
    """The next answer; None where the connection ends before its first byte. Raises EOFError where it ends within one."""
    try:
        first = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise EOFError(f"an answer ends after {error.partial[:80]!r}") from None
        return None
    except ConnectionError:
        return None
    lines = first.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    try:
        body = await reader.readexactly(int(fields["content-length"]))
    except (asyncio.IncompleteReadError, ConnectionError):
        raise EOFError(f"an answer with status {lines[0].split()[1]} ends within its body") from None
    return Answer(int(lines[0].split()[1]), fields.get("connection") == "close", body)

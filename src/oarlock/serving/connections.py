"""Limits on connections that the server library lacks: their number, the time to send a request head, and the time to read an answer.

Besides asyncio's protocol methods, this relies on these members of the library's protocol: `connections`, `transport`, `conn`, `cycle`
with `response_complete`, and `send_400_response`.
"""

import re
import time
from collections.abc import Collection
from typing import Any

from oarlock.errors import FormatError, LimitError
from oarlock.serving.extra import require_extra
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.refusal import error_body

__all__ = ["limited_protocol", "sweep"]

_CHUNK = re.compile(rb"\r\n[0-9a-fA-F]{1,20}[ \t]{0,8}(?:;[^\r\n]*+)?\r\n")  # the head of a chunk, or bytes that look like one
_CHUNKS_AT_ONCE, _CHUNKS = 4_000, 50_000  # per read, and per body


def limited_protocol(limits: ServingLimits, metrics: Metrics) -> type[Any]:
    """Return the protocol class for the server library, which creates one instance per connection."""
    base: Any = require_extra("uvicorn.protocols.http.h11_impl").H11Protocol

    class LimitedProtocol(base):
        """A connection. `head_since` is the time since which a request head is awaited; None while a request is answered."""

        head_since: float | None = None
        unsent_since: float | None = None
        is_refused = False
        chunks = 0  # of the current body

        def connection_made(self, transport: Any) -> None:
            self.is_refused = len(self.connections) >= limits.connections
            self.head_since = time.monotonic()
            super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            if self.is_refused and self.transport.is_closing():
                return
            if self.is_refused:
                _refuse(self.transport, limits, metrics)
                return
            found = len(_CHUNK.findall(data))
            self.chunks += found
            if found > _CHUNKS_AT_ONCE or self.chunks > _CHUNKS:
                self._end_by_chunks()
                return
            super().data_received(data)
            if not self._is_between():
                self.head_since = None
            elif self.head_since is None:
                self.head_since = time.monotonic()

        def on_response_complete(self) -> None:
            self.head_since, self.chunks = None, 0
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            """Answer a request that is not HTTP with an error, like other malformed requests; if an answer has begun, just close."""
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                metrics.answered("other", 400, 0.0)
                hint = f"request heads are limited to {limits.header_bytes:,} bytes"
                self.transport.write(_answer(b"400 Bad Request", error_body(FormatError("this is not an HTTP request", hint=hint))))
            self.transport.close()

        def _end_by_chunks(self) -> None:
            """Refuse a body sent in many tiny chunks, each of which costs as much time as a large one."""
            self.is_refused = True
            if not self.transport.is_closing():
                metrics.refused.labels("chunks").inc()
                metrics.answered("other", 413, 0.0)
                error = LimitError("the body has too many chunks", hint="send a Content-Length, or chunks of at least 1,000 bytes")
                self.transport.write(_answer(b"413 Content Too Large", error_body(error)))
                self.transport.close()

        def _is_between(self) -> bool:
            """Return whether no request is being answered."""
            return self.cycle is None or self.cycle.response_complete

    return LimitedProtocol


def sweep(connections: Collection[Any], limits: ServingLimits, metrics: Metrics) -> None:
    """Close connections that take too long to send a request head or to read an answer. Call it periodically."""
    now = time.monotonic()
    for each in list(connections):
        unsent = each.transport.get_write_buffer_size() > 0
        each.unsent_since = (each.unsent_since or now) if unsent else None
        if each.unsent_since is not None and now - each.unsent_since > limits.write_seconds:
            _end(each.transport, "write_seconds", metrics)
        elif each.head_since is not None and now - each.head_since > limits.header_seconds:
            _end(each.transport, "header_seconds", metrics)


def _end(transport: Any, limit: str, metrics: Metrics) -> None:
    metrics.refused.labels(limit).inc()
    transport.abort()


def _refuse(transport: Any, limits: ServingLimits, metrics: Metrics) -> None:
    if not transport.is_closing():
        metrics.refused.labels("connections").inc()
        error = LimitError(f"{limits.connections} connections are already open", hint="retry in a moment")
        transport.write(_answer(b"503 Service Unavailable", error_body(error)))
        transport.close()


def _answer(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (status, len(body)) + body

"""The outermost ASGI application: counts requests, enforces limits, and converts exceptions to error answers.

It depends on ASGI messages only, not on routes or the server library.
"""

import asyncio
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from oarlock.errors import ArgumentError, FormatError, LimitError, OarlockError
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.refusal import Refusal, error_body, status_of

__all__ = ["Gate"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_DRAIN_SECONDS = 2.0  # time to read the rest of a refused request; closing immediately could discard the answer
_DRAIN_BODIES = 4  # at most this many times the maximum body size is read and discarded
_INTERNAL = json.dumps({"error": "the server failed; its log says how", "type": "InternalError"}).encode()


class Gate:
    """An ASGI application around another one. `hosts` are the accepted Host names, None for any.

    After `stop`, new requests are refused. `accepted` is the number of earlier requests not answered yet.
    """

    def __init__(self, inner: Application, limits: ServingLimits, metrics: Metrics, hosts: frozenset[str] | None):
        self._inner = inner
        self._limits = limits
        self._metrics = metrics
        self._hosts = hosts
        self.accepted = 0
        self.is_stopping = False

    def stop(self) -> None:
        """Refuse all new requests, and report that the server is not ready."""
        self.is_stopping = True

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        accepted, started = not self.is_stopping, time.monotonic()
        exchange = _Exchange(scope, receive, send, self._limits, close=not accepted)
        self.accepted += accepted
        self._metrics.in_flight.inc()
        try:
            await self._answer(scope, exchange)
        finally:
            self.accepted -= accepted
            self._metrics.in_flight.dec()
            if exchange.status is not None:
                self._metrics.answered(scope.get("oarlock.route", "other"), exchange.status, time.monotonic() - started)

    async def _answer(self, scope: MutableMapping[str, Any], exchange: "_Exchange") -> None:
        try:
            self._require_welcome(scope, exchange.headers)
            async with asyncio.timeout(self._limits.seconds) as deadline:
                exchange.deadline = deadline
                try:
                    await self._inner(scope, exchange.receive, exchange.send)
                finally:
                    exchange.deadline = None
        except Refusal as refusal:
            if refusal.limit is not None:
                self._metrics.refused.labels(refusal.limit).inc()
            await exchange.refuse(refusal.status, error_body(refusal.error), refusal.retry)
        except OarlockError as error:
            await exchange.refuse(status_of(error), error_body(error))
        except TimeoutError:
            self._metrics.refused.labels("seconds").inc()
            late = LimitError(f"the answer took more than {self._limits.seconds:g} seconds", hint="retry later, or send a smaller request")
            await exchange.refuse(503, error_body(late), 1)
        except asyncio.CancelledError:  # only raised by the server library, after the stop timeout
            ended = LimitError(f"the server was stopped, and the answer took more than {self._limits.stop_seconds:g} seconds")
            await exchange.refuse(503, error_body(ended), 1)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            await exchange.refuse(500, _INTERNAL)

    def _require_welcome(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> None:
        """Check the request head. Raises Refusal."""
        if scope["http_version"] not in ("1.0", "1.1"):
            error = FormatError(f"HTTP/{scope['http_version']:.20} is not supported", hint="use HTTP/1.1")
            raise Refusal(400, error)
        if self.is_stopping and not scope["path"].startswith(("/v2/health/", "/metrics")):
            raise Refusal(503, ArgumentError("the server is stopping", hint="use another server"), retry=1)
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) + len(scope["raw_path"]) > self._limits.header_bytes:
            raise Refusal(431, LimitError(f"more than {self._limits.header_bytes:,} bytes before the body"))
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if self._hosts is not None and name not in self._hosts:
            raise Refusal(
                421,
                ArgumentError(
                    f"the host name {name!r:.80} is not allowed", hint="use oarlock serve FILE --host 0.0.0.0 to allow any host name"
                ),
            )


class _Exchange:
    """One request and its answer. The unread rest of a body is read and discarded for a moment after the answer."""

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send, limits: ServingLimits, *, close: bool):
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.status: int | None = None
        self.deadline: asyncio.Timeout | None = None
        self._receive = receive
        self._send = send
        self._limits = limits
        self._close = close
        length = self.headers.get(b"content-length", b"0")
        self._more = length != b"0" or b"transfer-encoding" in self.headers

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self._more = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.deadline is not None:
                self.deadline.reschedule(None)  # from here on, the client's reading time is limited instead
            if self._more or self._close:
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        elif message["type"] == "http.response.body" and not message.get("more_body", False) and self._more:
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def refuse(self, status: int, body: bytes, retry: int | None = None) -> None:
        """Send an error answer; if an answer has begun, send nothing more and close the connection."""
        if self.status is not None:
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if retry is not None:
            headers.append((b"retry-after", str(retry).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def _drain(self) -> None:
        left = _DRAIN_BODIES * self._limits.body_bytes
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._more and left > 0:
                    left -= len((await self.receive()).get("body", b""))
        except (
            TimeoutError,
            asyncio.CancelledError,
        ):  # cancelled by the server library while stopping; the answer still needs its end
            pass

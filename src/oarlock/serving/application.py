"""The HTTP routes of a server: the Open Inference Protocol v2, plain JSON, health and metrics."""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from oarlock.errors import ArgumentError, FormatError, LimitError, UndefinedVarError
from oarlock.garbage_collection import collection_paused
from oarlock.serving.extra import require_extra
from oarlock.serving.gate import Gate
from oarlock.serving.limits import HeldBytes, ServingLimits, Share
from oarlock.serving.metrics import Metrics
from oarlock.serving.protocol import FEWER, Answer, Request, describe, read_plain, read_request, write_answer, write_plain
from oarlock.serving.refusal import LESS_MEMORY, Refusal, too_much
from oarlock.serving.run_queue import RunQueue
from oarlock.serving.run_size import RunSize
from oarlock.serving.served_model import ServedModel, Values
from oarlock.serving.tensors import least_bytes, lists_and_numbers

__all__ = ["Service"]

_INLINE = 2**14  # maximum bytes of JSON to read, or numbers to write, in the event loop; larger work runs in a thread
_JSON_LENGTH = "inference-header-content-length"
_T = TypeVar("_T")


class Service:
    """A served model with its routes. Run `gate` as the ASGI application, and stop it to stop the service."""

    def __init__(
        self,
        model: ServedModel,
        limits: ServingLimits,
        metrics: Metrics,
        *,
        hosts: frozenset[str] | None = None,
        connections: Callable[[], int] = lambda: 0,
    ):
        self._model = model
        self._limits = limits
        self._metrics = metrics
        self.held = HeldBytes(limits.held_bytes)
        self._queue: RunQueue | None = None
        self._thread = ThreadPoolExecutor(1, "oarlock-read")  # one thread, because parsing JSON takes many times its size in memory
        self._description = describe(model.name, model.program, model.program.main.inputs)
        metrics.waiting.set_function(lambda: len(self.queue))
        metrics.connections.set_function(connections)
        metrics.held_bytes.set_function(lambda: self.held.total)
        self._router = self._routes()
        self.gate = Gate(self._route, limits, metrics, hosts)

    @property
    def queue(self) -> RunQueue:
        assert self._queue is not None, "the server has started"
        return self._queue

    @asynccontextmanager
    async def _running(self, _: object) -> AsyncIterator[None]:
        """Run the queue while the server runs."""
        self._queue = RunQueue(self._model, self._limits, self._metrics)
        dispatching = asyncio.create_task(self._queue.dispatch())
        try:
            yield
        finally:
            dispatching.cancel()
            self._queue.close()
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _routes(self) -> Any:
        routing = require_extra("starlette.routing")
        routes = [
            routing.Route(path, handler, methods=[method])
            for path, handler, method in (
                ("/v2", self._server, "GET"),
                ("/v2/health/live", self._live, "GET"),
                ("/v2/health/ready", self._ready, "GET"),
                ("/v2/models/{name}", self._metadata, "GET"),
                ("/v2/models/{name}/ready", self._ready_model, "GET"),
                ("/v2/models/{name}/infer", self._infer, "POST"),
                ("/infer", self._infer_plain, "POST"),
                ("/metrics", self._page_of_metrics, "GET"),
            )
        ]
        return routing.Router(routes, redirect_slashes=False, lifespan=self._running)

    async def _route(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Call the handler of a route. All exceptions are answered by the gate, not by the library."""
        scope["app"] = self  # otherwise the library answers unknown routes itself
        try:
            await self._router(scope, receive, send)
        except require_extra("starlette.exceptions").HTTPException as error:
            what = f"{scope['method']} {scope['path']}"
            hint = "GET /v2, GET /v2/models/NAME, POST /v2/models/NAME/infer, POST /infer"
            raise Refusal(error.status_code, ArgumentError(f"there is no {what!r:.120}", hint=hint)) from None

    # Information

    async def _server(self, request: Any) -> Any:
        version = sys.modules["oarlock"].__version__
        return _json({"name": "oarlock", "version": version, "extensions": ["binary_tensor_data"], "models": [self._model.name]})

    async def _live(self, request: Any) -> Any:
        return _json({"live": True})

    async def _ready(self, request: Any) -> Any:
        ready = not (self.gate.is_stopping or self.queue.is_overdue)
        return _json({"ready": ready}, 200 if ready else 503)

    async def _ready_model(self, request: Any) -> Any:
        self._require_model(request)
        ready = not (self.gate.is_stopping or self.queue.is_overdue)
        return _json({"name": self._model.name, "ready": ready}, 200 if ready else 503)

    async def _metadata(self, request: Any) -> Any:
        self._require_model(request)
        return _json(self._description)

    async def _page_of_metrics(self, request: Any) -> Any:
        page, media = self._metrics.page()
        return require_extra("starlette.responses").Response(page, headers={"content-type": media})

    def _require_model(self, request: Any) -> None:
        name = request.path_params["name"]
        if name != self._model.name:
            raise UndefinedVarError(f"there is no model {name!r:.80}", hint=f'this server has "{self._model.name}"')

    # Inference

    async def _infer(self, request: Any) -> Any:
        self._require_model(request)
        request.scope["oarlock.route"] = "infer"
        length = request.headers.get(_JSON_LENGTH)
        if length is not None and not (length.isascii() and length.isdigit() and len(length) < 12):
            raise FormatError(f"{_JSON_LENGTH} must be a number of bytes, not {length!r:.40}")
        json_length = None if length is None else int(length)
        program, limits = self._model.program, self._limits
        return await self._run(
            request,
            lambda body: read_request(body, program, limits, json_length=json_length),
            lambda asked, values: write_answer(self._model.name, asked, values, program, limits),
        )

    async def _infer_plain(self, request: Any) -> Any:
        request.scope["oarlock.route"] = "infer"
        program, limits = self._model.program, self._limits
        return await self._run(request, lambda body: read_plain(body, program, limits), lambda _, values: write_plain(values, limits))

    async def _run(self, request: Any, read: Callable[[bytes], Request], write: Callable[[Request, Values], Answer]) -> Any:
        held = self.held.share()
        try:
            with self.queue.arriving():
                body = await self._read_body(request, held)
                asked, size, answer_bytes = await self._aside(len(body) > _INLINE, partial(self._understand, read, body))
            del body
            held.hold(sum(tensor.nbytes for tensor in asked.feed.values()) + answer_bytes)
            values = await self.queue.run(asked.feed, size.bytes)
            held.hold(self._require_allowed(asked, {label: tuple(value.shape) for label, value in values.items()}))
            count = sum(lists_and_numbers(value.shape) for value in values.values())
            answer = await self._aside(count > _INLINE, lambda: write(asked, values))
            held.hold(answer.length)
            return _Response(answer, held)
        except BaseException:
            held.hold(0)
            raise

    def _understand(self, read: Callable[[bytes], Request], body: bytes) -> tuple[Request, RunSize, int]:
        """Return the request in a body, the size of its run, and the minimum size of its answer. Raises Refusal if a limit is exceeded."""
        asked = read(body)
        asked = Request(dict(self._model.check(asked.feed)), asked.wanted, asked.id, asked.binary)
        size = self._model.size_of(asked.feed)
        answer_bytes = self._require_allowed(asked, size.shapes)
        if size.bytes > self._limits.run_bytes:
            message = f"the run needs {size.bytes:,} bytes, but the limit is {self._limits.run_bytes:,}"
            raise too_much("run_bytes", message, hint=LESS_MEMORY)
        return asked, size, answer_bytes

    def _require_allowed(self, asked: Request, shapes: Mapping[str, Sequence[int | None]]) -> int:
        """Return the minimum size of an answer in bytes, from the known output sizes. Raises Refusal if it exceeds a limit."""
        total, limits = 0, self._limits
        for label in asked.wanted:
            shape, dtype = shapes[label], self._model.program.targets[label].dtype
            rows = shape[0] if shape else None
            if rows is not None and rows > limits.rows:
                hint = "request fewer rows, or raise oarlock serve FILE --rows"
                raise too_much("rows", f"the output {label!r} has {rows:,} rows, but the limit is {limits.rows:,}", hint=hint)
            total += math.prod(size for size in shape if size is not None) * least_bytes(dtype, is_binary=label in asked.binary)
        if total > limits.answer_bytes:
            message = f"the answer has at least {total:,} bytes, but the limit is {limits.answer_bytes:,}"
            raise too_much("answer_bytes", message, hint=FEWER)
        return total

    async def _aside(self, is_large: bool, work: Callable[[], _T]) -> _T:
        """Return the result of `work`, computed in a thread if it is large."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _uncollected, work) if is_large else work()

    async def _read_body(self, request: Any, share: Share) -> bytes:
        """Read the body of a request, adding its size to `share` as it arrives. Raises Refusal."""
        limits, declared = self._limits, request.headers.get("content-length")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, FormatError("compressed request bodies are not supported"))
        if declared is not None and int(declared) > limits.body_bytes:
            raise self._too_large()
        size, parts = 0, []
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for part in _parts(request):
                    size += len(part)
                    if size > limits.body_bytes:
                        raise self._too_large()
                    share.hold(size)
                    parts.append(part)
            return b"".join(parts)
        except TimeoutError:
            self._metrics.refused.labels("body_seconds").inc()
            raise Refusal(408, LimitError(f"the request body took more than {limits.body_seconds:g} seconds to arrive")) from None

    def _too_large(self) -> Refusal:
        self._metrics.refused.labels("body_bytes").inc()
        most = f"{self._limits.body_bytes:,} bytes"
        return Refusal(413, LimitError(f"the body has more than {most}", hint="raise oarlock serve FILE --body-bytes"))


def _json(content: object, status: int = 200) -> Any:
    return require_extra("starlette.responses").JSONResponse(content, status)


def _uncollected(work: Callable[[], _T]) -> _T:
    """Return the result of `work`, with garbage collection paused, because parsing JSON creates many lists."""
    with collection_paused():
        return work()


class _Response:
    """An answer, sent in pieces at the client's speed. Its bytes count against the limit until it is sent."""

    def __init__(self, answer: Answer, share: Share):
        self._answer = answer
        self._share = share

    async def __call__(self, scope: object, receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        answer = self._answer
        headers = {b"content-type": b"application/json"}
        if answer.json_length is not None:
            headers = {b"content-type": b"application/octet-stream", _JSON_LENGTH.encode(): str(answer.json_length).encode()}
        headers[b"content-length"] = str(answer.length).encode()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(headers.items())})
            for piece in answer.pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._share.hold(0)


async def _parts(request: Any) -> AsyncIterator[bytes]:
    """Yield the body of a request as it arrives. Raises Refusal if the client disconnects."""
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            raise Refusal(499, FormatError("the client disconnected before its request was complete"))
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return

"""The routes of a server: the Open Inference Protocol v2, plain JSON, health and metrics."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from oarlock.errors import ArgumentError, FormatError, LimitError, UndefinedVarError
from oarlock.serving.extra import require_extra
from oarlock.serving.gate import Gate
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.protocol import Answer, Request, describe, read_plain, read_request, write_answer, write_plain
from oarlock.serving.refusal import Refusal
from oarlock.serving.run_queue import RunQueue
from oarlock.serving.served_model import ServedModel, Values

__all__ = ["Service"]

_INLINE = 2**14  # bytes of JSON that are read, or numbers that are written, in the loop itself; a thread for more
_JSON_LENGTH = "inference-header-content-length"
_T = TypeVar("_T")


class Service:
    """A model behind routes. `application` is what a server of ASGI runs; `gate` stops it; `connections` counts what is open."""

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
        self._held = 0
        self._queue: RunQueue | None = None
        self._thread = ThreadPoolExecutor(1, "oarlock-read")  # one at a time: what JSON takes when it is read is many times its size
        self._description = describe(model.name, model.program, model.program.main.inputs)
        metrics.waiting.set_function(lambda: len(self.queue))
        metrics.connections.set_function(connections)
        metrics.held_bytes.set_function(lambda: self._held)
        self._router = self._routes()
        self.gate = Gate(self._route, limits, metrics, hosts)

    @property
    def queue(self) -> RunQueue:
        assert self._queue is not None, "the server has started"
        return self._queue

    @asynccontextmanager
    async def _running(self, _: object) -> AsyncIterator[None]:
        """While the server runs, what waits is run."""
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
        """Find the route and take it. Whatever is raised on the way is answered by the gate: nothing of the library's is between."""
        scope["app"] = self  # without one, the library answers by itself where there is no route
        try:
            await self._router(scope, receive, send)
        except require_extra("starlette.exceptions").HTTPException as error:
            what = f"{scope['method']} {scope['path']}"
            hint = "GET /v2, GET /v2/models/NAME, POST /v2/models/NAME/infer, POST /infer"
            raise Refusal(error.status_code, ArgumentError(f"there is no {what!r:.120}", hint=hint)) from None

    # What there is to know

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
        return _response(page, headers={"content-type": media})

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
            raise FormatError(f"{_JSON_LENGTH} is {length!r:.40}, which is no number of bytes")
        json_length = None if length is None else int(length)
        return await self._run(
            request,
            lambda body: read_request(body, self._model.program, json_length=json_length),
            lambda asked, values: write_answer(self._model.name, asked, values, self._model.program),
        )

    async def _infer_plain(self, request: Any) -> Any:
        request.scope["oarlock.route"] = "infer"
        return await self._run(request, lambda body: read_plain(body, self._model.program), lambda _, values: write_plain(values))

    async def _run(self, request: Any, read: Callable[[bytes], Request], write: Callable[[Request, Values], Answer]) -> Any:
        def understand(body: bytes) -> Request:
            asked = read(body)
            return Request(dict(self._model.check(asked.feed)), asked.wanted, asked.id, asked.binary)

        with self.queue.arriving():
            body = await self._read_body(request)
            try:
                asked = await self._aside(len(body) > _INLINE, partial(understand, body))
            finally:
                self._held -= len(body)
        del body
        values = await self.queue.run(asked.feed)
        count = sum(value.numel() for value in values.values())
        answer = await self._aside(count > _INLINE, lambda: write(asked, values))
        headers = {"content-type": "application/json"}
        if answer.json_length is not None:
            headers = {"content-type": "application/octet-stream", _JSON_LENGTH: str(answer.json_length)}
        return _response(answer.body, headers=headers)

    async def _aside(self, is_large: bool, work: Callable[[], _T]) -> _T:
        """The result of `work`, done in a thread where it is large."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work) if is_large else work()

    async def _read_body(self, request: Any) -> bytes:
        """The body of a request; its bytes are counted among those that are held. Raises Refusal, and then none of them is."""
        limits, declared = self._limits, request.headers.get("content-length")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, FormatError("the body is compressed, and is read only as it is"))
        if declared is not None and int(declared) > limits.body_bytes:
            raise self._too_large()
        held, parts = 0, []
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for part in _parts(request):
                    if held + len(part) > limits.body_bytes:
                        raise self._too_large()
                    if self._held + len(part) > limits.held_bytes:
                        self._metrics.refused.labels("held_bytes").inc()
                        many = LimitError(f"more than {limits.held_bytes:,} bytes of requests at once", hint="ask again in a moment")
                        raise Refusal(429, many, retry=1)
                    held, self._held = held + len(part), self._held + len(part)
                    parts.append(part)
            return b"".join(parts)
        except TimeoutError:
            self._held -= held
            self._metrics.refused.labels("body_seconds").inc()
            raise Refusal(408, LimitError(f"the body took more than {limits.body_seconds:g} seconds to come")) from None
        except BaseException:
            self._held -= held
            raise

    def _too_large(self) -> Refusal:
        self._metrics.refused.labels("body_bytes").inc()
        most = f"{self._limits.body_bytes:,} bytes"
        return Refusal(413, LimitError(f"the body has more than {most}", hint="oarlock serve FILE --body-bytes allows more"))


def _json(content: object, status: int = 200) -> Any:
    return require_extra("starlette.responses").JSONResponse(content, status)


def _response(body: bytes, *, headers: dict[str, str]) -> Any:
    return require_extra("starlette.responses").Response(body, headers=headers)


async def _parts(request: Any) -> AsyncIterator[bytes]:
    """The body of a request as it comes. Raises Refusal where the client goes away."""
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            raise Refusal(499, FormatError("the client went away before its request was whole"))
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return

"""A service asked without sockets: messages of ASGI in, an answer out. And programs to serve."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

import oarlock as ol
from oarlock.serving.application import Service
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.served_model import Feed, ServedModel

__all__ = ["Answered", "Asker", "model_of", "rowwise_program", "serve_here", "tensor"]

_T = TypeVar("_T")


@dataclass
class Answered:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """Asks a service that runs."""

    def __init__(self, service: Service):
        self.service = service

    async def __call__(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: dict[str, str] | None = None,
        parts: Sequence[bytes | None] = (),
        length: int | None = -1,
    ) -> Answered:
        """Ask. `content` is JSON unless it is bytes; `parts` are the pieces of a body, None where the client goes away.

        `length` is what the head says of it, None for nothing; the truth, unless given.
        """
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        pieces = list(parts) or [body]
        given = {"host": "127.0.0.1", **(headers or {})}
        if length is not None and (body or parts or length >= 0):
            given["content-length"] = str(sum(len(piece or b"") for piece in pieces) if length == -1 else length)
        elif length is None:
            given["transfer-encoding"] = "chunked"
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "scheme": "http", "headers": [(key.lower().encode(), value.encode()) for key, value in given.items()],
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            if not pieces:
                await asyncio.sleep(60)
            piece = pieces.pop(0)
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.service.gate(scope, receive, send)
        start, *rest = sent
        assert all(message["type"] == "http.response.body" for message in rest)
        headers_sent = {key.decode(): value.decode() for key, value in start["headers"]}
        whole = b"".join(message.get("body", b"") for message in rest)
        assert int(headers_sent["content-length"]) == len(whole)
        return Answered(start["status"], headers_sent, whole)


def serve_here(
    model: ol.Model,
    asking: Callable[[Asker], Awaitable[_T]],
    *,
    run: Callable[[Feed], Sequence[torch.Tensor]] | None = None,
    hosts: frozenset[str] | None = None,
    **limits: Any,
) -> _T:
    """The result of `asking`, which is given a service of `model`, called "m", that runs meanwhile."""

    async def whole() -> _T:
        allowed = ServingLimits(**limits)
        service = Service(ServedModel("m", model, run, run_bytes=allowed.run_bytes), allowed, Metrics(), hosts=hosts)
        async with service._running(None):
            return await asking(Asker(service))

    return asyncio.run(whole())


def tensor(name: str, value: Any, datatype: str = "FP32") -> dict[str, Any]:
    """A tensor of a request, of nested lists."""
    held = torch.tensor(value)
    return {"name": name, "shape": list(held.shape), "datatype": datatype, "data": value}


def rowwise_program() -> ol.Program:
    """`y = relu(x) * scale + shift` over rows of 3, and where the third of them lies in a table; no product, so that bits are equal."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3])
        id = ol.layer.data("id", shape=[], dtype="int64")
        scale = ol.layer.create_parameter([3], name="scale")
        table = ol.layer.create_parameter([4, 2], name="table")
        program.targets["y"] = ol.op.add(ol.op.multiply(ol.op.relu(x), scale), ol.op.tanh(x))
        program.targets["found"] = ol.op.gather(table, id)
    return program


def model_of(program: ol.Program, folder: Path) -> ol.Model:
    """The program, saved with first values and loaded."""
    ol.save_model(program, ol.init(program, ol.Scope()), folder / "model.safetensors")
    return ol.load_model(folder / "model.safetensors")

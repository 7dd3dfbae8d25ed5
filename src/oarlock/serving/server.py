"""The life cycle of a server: bound to the loopback interface by default, and stopped only after answering accepted requests."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from oarlock.errors import ArgumentError
from oarlock.serving.application import Service
from oarlock.serving.connections import limited_protocol, sweep
from oarlock.serving.extra import require_extra
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.served_model import ServedModel

__all__ = ["serve"]

_SWEEP_SECONDS = 0.5
_LAME_SECONDS = 0.2  # answers, with a refusal, requests that were sent before clients could notice the stop


def serve(
    model: ServedModel,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: ServingLimits | None = None,
    ready: Callable[[str], object] = lambda address: None,
) -> bool:
    """Serve a model until SIGTERM or SIGINT. Return whether all accepted requests were answered.

    `ready` is called with the address once it is bound; port 0 selects a free one. On the loopback interface, only local Host names are
    accepted, so that web pages cannot reach the server through DNS rebinding. After the first signal, new requests are refused and accepted
    ones answered within `limits.stop_seconds`; a second signal stops the server immediately.

    Raises ArgumentError if the address cannot be bound or the extra `serve` is not installed.
    """
    limits, metrics = limits or ServingLimits(), Metrics()
    uvicorn: Any = require_extra("uvicorn")
    bound = _bind(host, port)
    with contextlib.closing(bound):
        hosts = frozenset({"localhost", "127.0.0.1", "[::1]", host}) if _is_loopback(bound) else None
        service = Service(model, limits, metrics, hosts=hosts, connections=lambda: len(server.server_state.connections))
        config = uvicorn.Config(
            service.gate,
            http=limited_protocol(limits, metrics),
            ws="none",
            loop="asyncio",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            log_level="error",  # client errors are counted, not logged
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=3,  # for refusals, which wait two seconds for the rest of the request
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # the library would re-raise the signal and end the process
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return asyncio.run(_serve(server, service, bound, limits, metrics, ready))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def _serve(
    server: Any, service: Service, bound: socket.socket, limits: ServingLimits, metrics: Metrics, ready: Callable[[str], object]
) -> bool:
    """Run the server library and the tasks that monitor it."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def ask() -> None:
        if asked.is_set():
            server.should_exit = server.force_exit = True
        service.gate.stop()
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    answering = asyncio.create_task(server.serve(sockets=[bound]))
    watching = asyncio.create_task(_watch(server, limits, metrics))
    try:
        while not server.started and not answering.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready(_address(bound))
        stopping = asyncio.create_task(asked.wait())
        await asyncio.wait({answering, stopping}, return_when=asyncio.FIRST_COMPLETED)
        answered = await _finish(server, service, limits)
        await answering
        return answered
    finally:
        watching.cancel()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _watch(server: Any, limits: ServingLimits, metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        sweep(server.server_state.connections, limits, metrics)


async def _finish(server: Any, service: Service, limits: ServingLimits) -> bool:
    """Wait until accepted requests are answered, then stop the server. Return whether all were answered."""
    until = time.monotonic() + limits.stop_seconds
    await asyncio.sleep(_LAME_SECONDS)
    while service.gate.accepted and time.monotonic() < until and not server.should_exit:
        await asyncio.sleep(0.02)
    answered = not service.gate.accepted and service.queue.is_idle
    server.should_exit = True
    return answered


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address. Raises ArgumentError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind, protocol)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ArgumentError(f"invalid address {host}, port {port}: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.setblocking(False)
        return bound
    except (OSError, OverflowError) as error:
        bound.close()
        hint = "use --port 0 to select a free port"
        raise ArgumentError(f"cannot bind to {host}, port {port}: {getattr(error, 'strerror', None) or error}", hint=hint) from error


def _is_loopback(bound: socket.socket) -> bool:
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

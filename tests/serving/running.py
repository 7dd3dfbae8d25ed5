"""Servers in processes of their own, and connections to them, down to single bytes."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import oarlock

__all__ = ["Running", "read_answer", "serving"]

INSTALLED = str(Path(oarlock.__file__).parent.parent)
STARTS_WITHIN = 120.0  # seconds, on a machine that does much else

SCRIPT = """
import json, sys, time
from oarlock import inference
from oarlock.runtime.process import configure_process
from oarlock.serving.limits import ServingLimits
from oarlock.serving.served_model import ServedModel
from oarlock.serving.server import serve
path, limits, slow = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])
configure_process()
model = ServedModel("m", inference.load_model(path))
if slow:
    run = model._run
    model._run = lambda feed: (time.sleep(slow), run(feed))[1]
done = serve(model, port=0, limits=ServingLimits(**limits), ready=lambda address: print(address, flush=True))
sys.exit(0 if done else 1)
"""


@dataclass
class Running:
    """A server: its process, where it listens, and what it has printed."""

    process: subprocess.Popen[str]
    address: str
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def connect(self, seconds: float = 60.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), seconds)

    def ask(self, method: str, path: str, content: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer, or its text where that is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, None if content is None else json.dumps(content), {"content-type": "application/json"})
            answered = connection.getresponse()
            body = answered.read()
            is_json = answered.headers["content-type"] == "application/json"
            return answered.status, json.loads(body) if is_json else body.decode()

    def resident_bytes(self) -> int:
        """The memory that the process has now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")


@contextlib.contextmanager
def serving(path: Path, *, slow: float = 0.0, command: list[str] | None = None, **limits: Any) -> Iterator[Running]:
    """A server of the model at `path`, in which a run takes `slow` seconds more; or what `command` starts."""
    environment = {**os.environ, "PYTHONPATH": INSTALLED, "OMP_NUM_THREADS": str(torch.get_num_threads()), "COLUMNS": "120"}
    arguments = command or ["-c", SCRIPT, str(path), json.dumps(limits), str(slow)]
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running = Running(process, "")
    readers = [
        threading.Thread(target=_collect, args=(stream, lines), daemon=True)
        for stream, lines in ((process.stdout, running.lines), (process.stderr, running.errors))
    ]
    for reader in readers:
        reader.start()
    try:
        wait_until(lambda: any("http://" in line for line in running.lines) or process.poll() is not None, STARTS_WITHIN)
        found = next((line for line in running.lines if "http://" in line), None)
        assert found is not None, "".join(running.errors)
        running.address = "http://" + found.partition("http://")[2].partition("/")[0].strip()
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for reader in readers:
            reader.join(10)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _collect(stream: Any, lines: list[str]) -> None:
    with contextlib.suppress(ValueError):
        for line in stream:
            lines.append(line)


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds. Raises AssertionError when it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "that never came"
        time.sleep(0.02)


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The status, the head and the body of an answer; a status of 0 where the connection ended without one."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    except (http.client.HTTPException, ConnectionError):
        return 0, {}, b""
    finally:
        response.close()

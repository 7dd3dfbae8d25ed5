"""Requests that are made to take memory and time, and how a server stands them: its growth, its answers, its health meanwhile.

    PYTHONPATH=src:tests python -m serving_load.hostile --seed 0 --count 200

A request is one of `KINDS`, drawn with its sizes. Seconds are those that the server's processor worked, where these are fewer than
those on the clock: a machine that does much else shows nothing of the server.
"""

import argparse
import http.client
import json
import os
import random
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from serving.running import Running, serving

import oarlock as ol

__all__ = ["KINDS", "Observed", "hostile_model", "send"]

GROWTH = 512 * 2**20
SECONDS = 5.0
HEALTH_SECONDS = 1.0
LARGEST = 16 * 2**20
_INFER = "/v2/models/m/infer"


@dataclass(frozen=True)
class Hostile:
    """A request: its path, its body, and headers beside the usual ones."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """The effect of one request: the status of its answer, seconds until it, the longest wait of the health page, and bytes of growth."""

    status: int
    seconds: float
    health_seconds: float
    growth: int

    @property
    def faults(self) -> list[str]:
        found = []
        if self.status == 0 or (self.status >= 500 and self.status != 503):
            found.append(f"the status is {self.status}")
        if self.seconds > SECONDS:
            found.append(f"the answer took {self.seconds:.1f} s")
        if self.health_seconds > HEALTH_SECONDS:
            found.append(f"the health page took {self.health_seconds:.1f} s")
        if self.growth > GROWTH:
            found.append(f"the server grew by {self.growth / 2**20:.0f} MiB")
        return found


def hostile_model(folder: Path) -> Path:
    """A saved model whose rows may have no elements, and whose output has twenty times as many as its input."""
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=["t"])
        program.targets["y"] = ol.op.concat(*[ol.op.exp(x)] * 20, axis=1)
    path = folder / "model.safetensors"
    ol.save_model(program, ol.init(program, ol.Scope()), path)
    return path


def _tensor(data: bytes, shape: list[int], datatype: str = "FP32", more: bytes = b"") -> Hostile:
    text = b'{"inputs": [{"name": "x", "shape": %s, "datatype": "%s", "data": %s}]%s}'
    return Hostile(_INFER, text % (json.dumps(shape).encode(), datatype.encode(), data, more))


def _plain(data: bytes) -> Hostile:
    return Hostile("/infer", b'{"x": %s}' % data)


def _list(item: bytes, size: int) -> bytes:
    """A list of copies of `item`, of `size` bytes or a little less."""
    return b"[" + b",".join([item] * max(1, size // (len(item) + 1) - 1)) + b"]"


def _no_elements(draw: random.Random, size: int) -> Hostile:
    shape = draw.choice([[size, 0], [size, size, 0], [0, size * 100], [1, size, 0], [size * 10, 0]])
    return _tensor(b"[]", shape, more=draw.choice([b"", b', "parameters": {"binary_data_output": true}']))


def _values(draw: random.Random, size: int) -> Hostile:
    items = [
        b"[]", b"{}", b"[[]]", b"[1]", b'{"a":1}', b'"ab"', b'"NaN"', b"0", b"300", b"1e9", b"-0.0", b"1.2345678", b"null", b"true",
        b"1" * 300, b"1e400", b'["Infinity"]', b"[1,2]", b'"\\ud83d"', b'{"a":[{"b":{}}]}',
    ]  # fmt: skip
    data = _list(draw.choice(items), size)
    return draw.choice([_plain(data), _plain(b"[" + data + b"]"), _tensor(data, [size // 4, 0]), _tensor(data, [1, max(1, size // 8)])])


def _long_text(draw: random.Random, size: int) -> Hostile:
    text = draw.choice([b"a" * size, "\U0001f600".encode() + b"a" * size, b"\\u0041" * (size // 6), b"[" * size, b"1" * size])
    return draw.choice([
        Hostile("/infer", b'{"%s": 1}' % text), _plain(b'"%s"' % text), _plain(b"[[%s]]" % text), _plain(b"[[0.%s]]" % (b"3" * size)),
        _tensor(b"[1]", [1, 1], more=b', "id": "%s"' % text), _tensor(b"[1]", [1, 1], datatype="F" * size), Hostile("/infer", text),
    ])  # fmt: skip


def _many_things(draw: random.Random, size: int) -> Hostile:
    count = size // 60
    tensors = b",".join(b'{"name":"%x","shape":[0],"datatype":"FP32","data":[]}' % number for number in range(count))
    keys = b",".join(b'"%x":1' % number for number in range(count * 4))
    outputs = b', "outputs": ' + _list(draw.choice([b'{"name":"y"}', b'{"name":"z"}', b"{}"]), size)
    shape = b'{"inputs": [{"name": "x", "shape": %s, "datatype": "FP32", "data": []}]}' % _list(b"1", size)
    return draw.choice([
        Hostile(_INFER, b'{"inputs": [%s]}' % tensors), Hostile("/infer", b"{%s}" % keys), _tensor(b"[1]", [1, 1], more=outputs),
        Hostile(_INFER, shape),
    ])  # fmt: skip


def _large_answer(draw: random.Random, size: int) -> Hostile:
    """An answer that is many times as long as the request, as JSON or as bytes."""
    rows = draw.choice([1, size // 100 + 1, size // 8])
    width = max(1, draw.choice([size, size // 20]) // 4 // rows)
    raw = struct.pack("<f", draw.random()) * (rows * width)
    tensor = {"name": "x", "shape": [rows, width], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": draw.random() < 0.5}}).encode()
    return Hostile(_INFER, head + raw, {"Inference-Header-Content-Length": str(len(head))})


def _noise(draw: random.Random, size: int) -> Hostile:
    return Hostile(draw.choice([_INFER, "/infer"]), draw.randbytes(size))


KINDS: dict[str, Callable[[random.Random, int], Hostile]] = {
    "no elements": _no_elements,
    "values": _values,
    "long text": _long_text,
    "many things": _many_things,
    "a large answer": _large_answer,
    "noise": _noise,
}


def send(running: Running, request: Hostile) -> Observed:
    """Send a request, and ask for the health page until it is answered."""
    process = _Process(running.process.pid)
    process.forget_peak()
    before, status, taken = process.resident(), 0, 0.0
    with _health(running, process) as waits:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
        with closing(connection), process.seconds() as clock:
            try:
                connection.request("POST", request.path, request.body, request.headers)
                answered = connection.getresponse()
                answered.read()
                status = answered.status
            except (OSError, http.client.HTTPException):
                status = 0
        taken = clock[0]
    return Observed(status, taken, max(waits, default=0.0), process.peak() - before)


@contextmanager
def _health(running: Running, process: "_Process") -> Iterator[list[float]]:
    """How long each answer of the health page took, meanwhile."""
    waits: list[float] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.wait(0.02):
            with process.seconds() as clock:
                running.ask("GET", "/v2/health/live")
            waits.append(clock[0])

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield waits
    finally:
        is_over.set()
        thread.join()


class _Process:
    """The memory and the time of a process, as the system counts them."""

    def __init__(self, number: int):
        self._folder = Path(f"/proc/{number}")

    def forget_peak(self) -> None:
        (self._folder / "clear_refs").write_text("5")

    def resident(self) -> int:
        return self._bytes("VmRSS")

    def peak(self) -> int:
        return self._bytes("VmHWM")

    def _bytes(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

    @contextmanager
    def seconds(self) -> Iterator[list[float]]:
        """The seconds until the end of the block: on the clock, or those that the process computed where these are fewer."""
        taken = [0.0]
        clock, computed = time.monotonic(), self._computed()
        yield taken
        taken[0] = min(time.monotonic() - clock, self._computed() - computed + 0.02)

    def _computed(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m serving_load.hostile", description="Send a server what is made to take memory and time."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    draw, failures, worst = random.Random(arguments.seed), 0, Observed(200, 0.0, 0.0, 0)
    with tempfile.TemporaryDirectory() as folder, serving(hostile_model(Path(folder))) as running:
        for number in range(arguments.count):
            kind = draw.choice([*KINDS])
            request = KINDS[kind](draw, draw.choice([1000, 100_000, 2_000_000, LARGEST - 1000]))
            seen = send(running, request)
            seconds, health = max(worst.seconds, seen.seconds), max(worst.health_seconds, seen.health_seconds)
            worst = Observed(200, seconds, health, max(worst.growth, seen.growth))
            if seen.faults:
                failures += 1
                print(f"{number}: {kind}, {len(request.body):,} bytes, {request.body[:150]!r}: {'; '.join(seen.faults)}")
        failures += len(running.errors)
        print("".join(running.errors), end="")
    print(
        f"{arguments.count:,} requests: an answer took at most {worst.seconds:.2f} s, the health page {worst.health_seconds:.2f} s, "
        f"the server grew by at most {worst.growth / 2**20:.0f} MiB\n{failures} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

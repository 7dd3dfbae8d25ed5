"""Clients of a server: those that ask and compare, and those that do what nobody should."""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from serving_load.http import Answer, head, read_answer

__all__ = ["Asked", "Clients"]

PATH = "/v2/models/m/infer"
_SURELY_READ = 2.0  # seconds: a request that was sent so long before the signal had been read, if this machine runs at all
_WITHIN = 30.0  # seconds for an answer


@dataclass(frozen=True)
class Asked:
    """A request, and what is right to answer."""

    body: bytes
    expected: numpy.ndarray


@dataclass
class Clients:
    """All clients of one run, and what they saw. `tolerance` is relative and absolute; None where bits are compared."""

    port: int
    requests: Sequence[Asked]
    tolerance: tuple[float, float] | None
    largest: int
    seed: int
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    signal_at: float | None = None  # when the server was sent the signal
    ended: bool = False

    async def run(self, count: int) -> None:
        """Run `count` clients until the server has gone: three of four ask and compare."""
        odd: list[Callable[[random.Random], Any]] = [self._malformed, self._too_large, self._slow, self._goes_away]
        tasks = []
        for number in range(count):
            draw = random.Random(f"{self.seed} {number}")
            client = odd[number // 4 % len(odd)] if number % 4 == 3 else self._asks
            tasks.append(asyncio.create_task(self._repeat(client, draw)))
        await asyncio.gather(*tasks)

    async def _repeat(self, client: Callable[[random.Random], Any], draw: random.Random) -> None:
        while not self.ended:
            try:
                await client(draw)
            except ConnectionRefusedError:
                if self.signal_at is None:
                    self.failures.append("a connection was refused")
                return
            except (ConnectionError, asyncio.IncompleteReadError):
                if self.signal_at is not None:
                    return
            except EOFError as error:
                self.failures.append(str(error))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def _asks(self, draw: random.Random) -> None:
        """Ask some things over one connection, and compare each answer."""
        reader, writer = await self._connect()
        with contextlib.closing(writer):
            for _ in range(draw.randint(1, 50)):
                asked = draw.choice(self.requests)
                sent = time.monotonic()
                writer.write(head(PATH, len(asked.body)) + asked.body)
                await writer.drain()
                answer = await asyncio.wait_for(read_answer(reader), _WITHIN)
                if not self._judge(asked, answer, sent) or answer is None or answer.closes or self.ended:
                    return

    def _judge(self, asked: Asked, answer: Answer | None, sent: float) -> bool:
        """Note an answer; whether it is one to the question."""
        surely = self.signal_at is None or sent < self.signal_at - _SURELY_READ
        if answer is None:
            self.statuses["none"] += 1
            if surely:
                self.failures.append("a request was not answered")
            return False
        self.statuses[str(answer.status)] += 1
        if answer.status != 200:
            if self.signal_at is None or answer.status != 503:  # a refusal by a server that stops is an answer too
                self.failures.append(f"a request was answered with {answer.status}: {answer.body[:200]!r}")
            return False
        self.seconds.append(time.monotonic() - sent)
        output = answer.json["outputs"][0]
        found = numpy.array(output["data"], "float32").reshape(output["shape"])
        if self.tolerance is None:
            right = found.tobytes() == asked.expected.tobytes()
        else:
            right = found.shape == asked.expected.shape and numpy.allclose(found, asked.expected, *self.tolerance)
        if not right:
            self.failures.append("an answer is wrong")
        return True

    async def _refused(self, data: bytes, statuses: set[int], *, rest: bytes = b"") -> None:
        """Send what is to be refused, with one of these statuses."""
        reader, writer = await self._connect()
        with contextlib.closing(writer):
            writer.write(data)
            answer = await asyncio.wait_for(read_answer(reader), _WITHIN)
            if answer is None:
                if self.signal_at is None:
                    self.failures.append("what is malformed was not answered")
                return
            self.statuses[f"{answer.status} to what is wrong"] += 1
            if answer.status not in statuses and self.signal_at is None:
                self.failures.append(f"what is malformed was answered with {answer.status}: {answer.body[:200]!r}")
            if b"Traceback" in answer.body or not {"error", "type"} <= answer.json.keys():
                self.failures.append(f"an error that is none of ours: {answer.body[:200]!r}")

    async def _malformed(self, draw: random.Random) -> None:
        """A good request, spoilt: bytes of its body, a field of it, or HTTP itself."""
        body = bytearray(draw.choice(self.requests).body)
        kind = draw.randrange(4)
        if kind == 0:
            await self._refused(draw.randbytes(draw.randint(4, 200)) + b"\r\n\r\n", {400, 404, 431})
            return
        if kind == 1:
            message = json.loads(body)
            item = message["inputs"][0]
            item[draw.choice(["name", "shape", "datatype", "data"])] = draw.choice([None, 3, "x", [], {}, [-1], [2**40], [[1], 2], "FP64"])
            body = bytearray(json.dumps(message).encode())
        elif kind == 2:
            del body[draw.randrange(len(body)) :]
        else:
            body = bytearray(b"[" * draw.randint(1, 5000))
        await self._refused(head(PATH, len(body)) + body, {400})

    async def _too_large(self, draw: random.Random) -> None:
        await self._refused(head(PATH, self.largest + 1) + b" " * draw.choice([0, 1000, self.largest + 1]), {413})
        await asyncio.sleep(0.2)

    async def _slow(self, draw: random.Random) -> None:
        """Bytes one by one, of a head or of a body; the server ends it, or answers."""
        asked = draw.choice(self.requests)
        data = head(PATH, len(asked.body)) + asked.body
        reader, writer = await self._connect()
        with contextlib.closing(writer):
            if draw.random() < 0.5:
                writer.write(data[: len(data) - 40])
                data = data[-40:]
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(draw.choice([0.0, 0.02, 0.3]))
                if self.ended or reader.at_eof():
                    return
            answer = await asyncio.wait_for(read_answer(reader), _WITHIN)
            self.statuses["slow, then " + ("none" if answer is None else str(answer.status))] += 1

    async def _goes_away(self, draw: random.Random) -> None:
        asked = draw.choice(self.requests)
        data = head(PATH, len(asked.body)) + asked.body
        _, writer = await self._connect()
        writer.write(data[: draw.randint(0, len(data))])
        await writer.drain()
        await asyncio.sleep(draw.choice([0.0, 0.01]))
        writer.transport.abort()
        self.statuses["gone"] += 1
        await asyncio.sleep(0.1)  # who does this without end is a flood

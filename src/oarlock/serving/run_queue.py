"""The request queue of a model. Requests that may be batched run together, in one thread."""

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from oarlock.errors import LimitError
from oarlock.serving.limits import ServingLimits
from oarlock.serving.metrics import Metrics
from oarlock.serving.refusal import Refusal
from oarlock.serving.served_model import Feed, ServedModel, Values

__all__ = ["RunQueue"]


@dataclass(eq=False)
class _Waiting:
    """A waiting feed: its rows, the bytes of its run, and the `kind` of feeds it may be batched with, None to run alone."""

    feed: Feed
    rows: int
    bytes: int
    kind: Hashable | None
    future: asyncio.Future[Values]


class RunQueue:
    """A first-in, first-out queue of feeds. Everything except the model run happens in one event loop, so there are no locks."""

    def __init__(self, model: ServedModel, limits: ServingLimits, metrics: Metrics):
        self._model = model
        self._limits = limits
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._arriving = 0
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "oarlock-run")
        self._running_since: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_overdue(self) -> bool:
        """Whether the current run has exceeded the time limit of a request."""
        since = self._running_since
        return since is not None and time.monotonic() - since > self._limits.seconds

    @property
    def is_idle(self) -> bool:
        """Whether no run is in progress."""
        return self._running_since is None

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Mark that a request is being received in this context; others may wait for it briefly."""
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1
            self._changed.set()

    async def run(self, feed: Feed, bytes: int) -> Values:
        """Queue a feed whose run needs `bytes` of memory, and return the values of the targets. Cancelling removes it from the queue.

        Raises Refusal if the queue is full, and any exception of the run.
        """
        if len(self._waiting) >= self._limits.queue:
            self._metrics.refused.labels("queue").inc()
            raise Refusal(429, LimitError(f"{self._limits.queue} requests are already waiting", hint="retry in a moment"), retry=1)
        joinable = self._model.joinable(feed) if self._limits.batch_rows > 1 else None
        rows, kind = (1, None) if joinable is None else (joinable.rows, joinable.kind)
        waiting = _Waiting(feed, rows, bytes, kind, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._changed.set()
        try:
            return await waiting.future
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    async def dispatch(self) -> None:
        """Run waiting requests until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._changed.clear()
                await self._changed.wait()
            batch = [self._waiting.popleft()]
            await self._fill(batch)
            batch = [each for each in batch if not each.future.done()]  # skip cancelled requests
            if not batch:
                continue
            self._running_since = time.monotonic()
            try:
                results = await loop.run_in_executor(self._thread, self._model.run, [each.feed for each in batch])
            except Exception as error:  # an internal error: the model catches exceptions of runs
                results = [error] * len(batch)
            self._metrics.ran(len(batch), sum(each.rows for each in batch), time.monotonic() - self._running_since)
            self._running_since = None
            for each, result in zip(batch, results, strict=True):
                if each.future.done():
                    continue
                if isinstance(result, Exception):
                    each.future.set_exception(result)
                else:
                    each.future.set_result(result)

    async def _fill(self, batch: list[_Waiting]) -> None:
        """Add to `batch` the waiting requests that may run with its first, and wait briefly for requests being received."""
        first, until = batch[0], time.monotonic() + self._limits.batch_seconds
        if first.kind is None:
            return
        while True:
            rows, bytes = sum(each.rows for each in batch), sum(each.bytes for each in batch)
            for each in list(self._waiting):
                is_small = rows + each.rows <= self._limits.batch_rows and bytes + each.bytes <= self._limits.run_bytes
                if each.kind == first.kind and is_small:
                    self._waiting.remove(each)
                    batch.append(each)
                    rows, bytes = rows + each.rows, bytes + each.bytes
            left = until - time.monotonic()
            if rows >= self._limits.batch_rows or not self._arriving or left <= 0:
                return
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return

    def close(self) -> None:
        """Shut down the thread; waiting requests are cancelled."""
        for each in self._waiting:
            each.future.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

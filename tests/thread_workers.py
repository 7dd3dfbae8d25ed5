"""Workers that are threads of one process, for tests: they exchange tensors through memory."""

import threading
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import torch

from oarlock.runtime.workers import Workers

__all__ = ["ThreadWorkers", "run_together", "train_together"]

_ALONE = Workers()
_REDUCTIONS = {"sum": torch.Tensor.add, "max": torch.maximum, "min": torch.minimum}


class _Table:
    """A table that each of `count` workers lays something on, and takes from when all have."""

    def __init__(self, count: int):
        self.count = count
        self.slots: list[Any] = [None] * count
        self.barrier = threading.Barrier(count, timeout=60)

    def exchange(self, index: int, item: object) -> list[Any]:
        self.slots[index] = item
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class ThreadWorkers(Workers):
    """One of several threads. `log` has what it exchanged, by name and shape."""

    def __init__(self, index: int, table: _Table):
        self.index = index
        self.count = table.count
        self._table = table
        self.log: list[tuple[str, tuple[int, ...]]] = []

    def _exchange(self, what: str, tensor: torch.Tensor | list[torch.Tensor]) -> list[Any]:
        shape = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else tuple(len(item.shape) for item in tensor)
        self.log.append((what, shape))
        copy = tensor.clone() if isinstance(tensor, torch.Tensor) else [item.clone() for item in tensor]  # its owner may write over it
        found = self._table.exchange(self.index, (what, copy))
        assert {name for name, _ in found} == {what}, [name for name, _ in found]
        return [item for _, item in found]

    def all_reduce(self, tensors: Sequence[torch.Tensor], op: str) -> list[torch.Tensor]:
        everybody = self._exchange("all_reduce", list(tensors))
        totals = [item.clone() for item in everybody[0]]
        for others in everybody[1:]:
            totals = [_REDUCTIONS[op](total, other) for total, other in zip(totals, others, strict=True)]
        return totals

    def all_gather(self, tensor: torch.Tensor, counts: Sequence[int] | None, axis: int) -> torch.Tensor:
        parts = self._exchange("all_gather", tensor)
        assert counts is None or list(counts) == [part.shape[axis] for part in parts]
        return torch.cat(parts, axis)

    def reduce_scatter(self, tensor: torch.Tensor, counts: Sequence[int], axis: int) -> torch.Tensor:
        total = sum(self._exchange("reduce_scatter", tensor))
        assert isinstance(total, torch.Tensor)
        return total.split(list(counts), axis)[self.index].contiguous()

    def broadcast(self, tensor: torch.Tensor, root: int) -> torch.Tensor:
        return self._exchange("broadcast", tensor)[root].clone()

    def all_to_all(self, tensor: torch.Tensor) -> torch.Tensor:
        parts = self._exchange("all_to_all", tensor)
        return torch.cat([part.chunk(self.count)[self.index] for part in parts])


def run_together(count: int, work: Callable[[ThreadWorkers], Any]) -> list[Any]:
    """The results of `work` on each of several workers. Raises what the first of them raised."""
    table = _Table(count)
    results: list[Any] = [None] * count
    raised: list[BaseException] = []

    def run(workers: ThreadWorkers) -> None:
        try:
            results[workers.index] = work(workers)
        except BaseException as error:  # it is raised below
            if not isinstance(error, threading.BrokenBarrierError):
                raised.append(error)
            table.barrier.abort()

    threads = [threading.Thread(target=run, args=(ThreadWorkers(index, table),)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return results


def train_together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(index)`, in which `ol.train` finds itself one of several workers. Raises what the first of them raised."""
    own = threading.local()

    def run(workers: ThreadWorkers) -> Any:
        own.workers = workers
        return work(workers.index)

    def find() -> Workers:
        return getattr(own, "workers", _ALONE)

    with patch("oarlock.training.trainer.connect", find), patch("oarlock.runtime.executor.current_workers", find):
        return run_together(count, run)

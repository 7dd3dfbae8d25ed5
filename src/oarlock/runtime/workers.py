"""Workers: processes that run one program together, each on a part of the data, and exchange tensors.

Tensors are exchanged by `torch.distributed`, with gloo or NCCL. Workers are started by torchrun, or anything that sets the same environment
variables.
"""

import atexit
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as distributed
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]  public, though its list of names lacks them
from torch.distributed.rendezvous import rendezvous

from oarlock.errors import ArgumentError, WorkerError
from oarlock.ir.location import here
from oarlock.tensor.shares import Reduction, bounds_of

__all__ = ["ProcessGroup", "Workers", "connect", "current_workers", "disconnect", "is_first_worker", "is_worker"]

_TO_COME = timedelta(minutes=5)  # for all workers to start, which takes longer than an exchange
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Workers:
    """A single worker: `index` 0 of a `count` of 1. Exchanges return its own tensors."""

    index = 0
    count = 1

    def all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> list[torch.Tensor]:
        """Return the element-wise sum, maximum or minimum of each tensor over all workers."""
        return list(tensors)

    def start_all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> torch.Tensor:
        """Start an `all_reduce`. Return its results flattened and concatenated; they are valid after `finish`."""
        return torch.cat([tensor.reshape(-1) for tensor in self.all_reduce(tensors, op)])

    def finish(self, exchange: torch.Tensor) -> None:
        """Wait for a `start_all_reduce`."""

    def all_gather(self, tensor: torch.Tensor, counts: Sequence[int] | None, axis: int) -> torch.Tensor:
        """Return the tensors of all workers concatenated along `axis`; worker i has size `counts[i]` there."""
        return tensor

    def reduce_scatter(self, tensor: torch.Tensor, counts: Sequence[int], axis: int) -> torch.Tensor:
        """Return this worker's part, along `axis`, of the sum over all workers."""
        return tensor

    def broadcast(self, tensor: torch.Tensor, root: int) -> torch.Tensor:
        """Return the tensor of worker `root`."""
        return tensor

    def all_to_all(self, tensor: torch.Tensor) -> torch.Tensor:
        """Split the rows of each worker into equal parts, and return the parts that are for this worker."""
        return tensor

    def least(self, number: int) -> int:
        """Return the minimum of a number over all workers."""
        return number if self.count == 1 else int(self.all_reduce([torch.tensor([number])], "min")[0])

    def any_says(self, flag: bool) -> bool:
        """Return whether `flag` is true on at least one worker."""
        return not self.least(int(not flag))


_ALONE = Workers()


class ProcessGroup(Workers):
    """Workers that are processes, connected by a process group of `torch.distributed`; by default the default group.

    Every method raises WorkerError if a worker has ended or does not answer within the timeout of the group.
    """

    def __init__(self, group: "distributed.ProcessGroup | None" = None):
        self.group = group
        self.index = distributed.get_rank(group)
        self.count = distributed.get_world_size(group)
        self._started: dict[int, distributed.Work] = {}  # by the address of the elements

    def start_all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> torch.Tensor:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._named("all_reduce"):
            work = distributed.all_reduce(flat, getattr(distributed.ReduceOp, op.upper()), self.group, async_op=True)
        assert work is not None
        self._started[flat.data_ptr()] = work
        return flat

    def finish(self, exchange: torch.Tensor) -> None:
        with self._named("all_reduce"):
            self._started.pop(exchange.data_ptr()).wait()

    def all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> list[torch.Tensor]:
        if len(tensors) == 1:
            flat = tensors[0].clone(memory_format=torch.contiguous_format)
        else:
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._named("all_reduce"):
            distributed.all_reduce(flat, getattr(distributed.ReduceOp, op.upper()), self.group)
        if len(tensors) == 1:
            return [flat]
        parts = flat.split([tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def all_gather(self, tensor: torch.Tensor, counts: Sequence[int] | None, axis: int) -> torch.Tensor:
        if counts is None:
            counts = self._gather_counts(tensor.shape[axis], tensor.device)
        if len(counts) != self.count or counts[self.index] != tensor.shape[axis]:
            raise ValueError(
                f"worker {self.index} has size {tensor.shape[axis]} along axis {axis}, which does not match the sizes {list(counts)} of all"
            )
        rows = tensor.movedim(axis, 0).contiguous()
        sent = rows.view(torch.uint8) if rows.dtype is torch.bool else rows
        parts = [sent.new_empty(count, *sent.shape[1:]) for count in counts]
        with self._named("all_gather"):
            if min(counts) == max(counts):
                distributed.all_gather(parts, sent, self.group)
            else:  # parts of different sizes, which all_gather does not support
                parts[self.index] = sent.clone()
                for root, part in enumerate(parts):
                    if part.numel():
                        distributed.broadcast(part, self._global(root), self.group)
        whole = torch.cat(parts)
        whole = whole.view(torch.bool) if rows.dtype is torch.bool else whole
        return whole.movedim(0, axis).contiguous()

    def _gather_counts(self, count: int, device: torch.device) -> list[int]:
        own = torch.tensor([count], dtype=torch.int64, device=device)
        counts = [torch.empty_like(own) for _ in range(self.count)]
        with self._named("all_gather"):
            distributed.all_gather(counts, own, self.group)
        return [int(each) for each in counts]

    def reduce_scatter(self, tensor: torch.Tensor, counts: Sequence[int], axis: int) -> torch.Tensor:
        rows = tensor.movedim(axis, 0).contiguous()
        if len(counts) != self.count or sum(counts) != len(rows):
            raise ValueError(f"the sizes {list(counts)} of all workers do not match {len(rows)} along axis {axis}")
        with self._named("reduce_scatter"):
            if min(counts) == max(counts):
                own = rows.new_empty(counts[self.index], *rows.shape[1:])
                distributed.reduce_scatter_tensor(own, rows, group=self.group)
            else:
                summed = rows.clone()
                distributed.all_reduce(summed, group=self.group)
                start, stop = bounds_of(counts, self.index)
                own = summed[start:stop]
        return own.movedim(0, axis).contiguous()

    def broadcast(self, tensor: torch.Tensor, root: int) -> torch.Tensor:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        sent = tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor
        with self._named("broadcast"):
            distributed.broadcast(sent, self._global(root), self.group)
        return tensor

    def all_to_all(self, tensor: torch.Tensor) -> torch.Tensor:
        sent = tensor.contiguous()
        as_bytes = sent.view(torch.uint8) if sent.dtype is torch.bool else sent
        received = torch.empty_like(as_bytes)
        with self._named("all_to_all"):
            distributed.all_to_all_single(received, as_bytes, group=self.group)
        return received.view(torch.bool) if sent.dtype is torch.bool else received

    def _global(self, index: int) -> int:
        return index if self.group is None else distributed.get_global_rank(self.group, index)

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Convert exceptions of the communication library to WorkerError, with the name of the exchange."""
        try:
            yield
        except RuntimeError as error:
            raise WorkerError(
                f"worker {self.index} of {self.count}: {what} failed: {' '.join(str(error).split())[:300]}",
                hint="another worker has ended or does not answer; restart all workers from their last checkpoint",
            ) from error


def current_workers() -> Workers:
    """Return the workers connected by `connect`, or a single worker."""
    if _connected is not None:
        return _connected
    return _ALONE


_connected: ProcessGroup | None = None


def is_worker() -> bool:
    """Return whether the environment declares this process as one of several workers, connected or not."""
    return "RANK" in os.environ


def is_first_worker() -> bool:
    """Return whether this process is the first worker, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def connect(*, timeout: float = 30.0, backend: str | None = None) -> Workers:
    """Connect this process to the other workers of its run and return them; without environment variables, return a single worker.

    The variables are RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as set by torchrun. `timeout` is the time in seconds that an exchange
    waits for a worker. `backend` is a backend of `torch.distributed`; by default gloo for CPUs and, if there is a GPU, NCCL for GPUs. A
    second call returns the same workers. Raises ArgumentError for invalid variables, and WorkerError if not all workers connect.
    """
    global _connected
    if _connected is not None:
        return _connected
    given = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if not given:
        return _ALONE
    missing = [name for name in _VARIABLES if name not in given]
    if missing or not all(given[name].isdecimal() for name in ("RANK", "WORLD_SIZE", "MASTER_PORT")):
        raise ArgumentError(
            f"RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT must all be set and valid, but are {given}",
            location=here(),
            hint="start workers by torchrun, which sets them: torchrun --nproc-per-node 2 train.py",
        )
    if not distributed.is_initialized():
        chosen = backend or ("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        try:
            store, rank, count = next(rendezvous("env://", timeout=_TO_COME))
            store = _store_of_this_start(store, rank, count)
            distributed.init_process_group(chosen, store=store, rank=rank, world_size=count, timeout=timedelta(seconds=timeout))
        except (RuntimeError, ValueError) as error:
            raise WorkerError(f"not all workers connected: {' '.join(str(error).split())[:300]}", location=here()) from error
    atexit.register(disconnect)  # otherwise the library sometimes aborts the process at exit
    _connected = ProcessGroup()
    return _connected


def _store_of_this_start(store: Store, rank: int, count: int) -> Store:
    """Return a part of `store` for this start of the workers only. Raises RuntimeError if a worker does not connect.

    torchrun keeps one store for all restarts, so a worker could read the address of one that has ended. Therefore each worker sends a
    request under a unique name, and the first worker answers each with the name of the common part.
    """
    own = secrets.token_hex(8)
    if rank:
        store.set(f"oarlock/asks/{rank}", own)
        chosen = store.get(f"oarlock/answer/{own}").decode()
        store.set(f"oarlock/knows/{chosen}/{rank}", "")
        return PrefixStore(chosen, store)
    until, missing = time.monotonic() + _TO_COME.total_seconds(), set(range(1, count))
    while missing:
        for other in sorted(missing):
            if store.check([f"oarlock/asks/{other}"]):  # possibly the request of an ended worker: it will be renewed
                store.set(f"oarlock/answer/{store.get(f'oarlock/asks/{other}').decode()}", own)
            if store.check([f"oarlock/knows/{own}/{other}"]):
                missing.remove(other)
        if missing and time.monotonic() > until:
            raise RuntimeError(f"worker {min(missing)} of {count} did not connect within {_TO_COME.total_seconds():.0f} s")
        time.sleep(0.01)
    return PrefixStore(own, store)


def disconnect() -> None:
    """Close the connection made by `connect`; this process is then a single worker."""
    global _connected
    if _connected is not None:
        _connected = None
        if distributed.is_initialized():
            distributed.destroy_process_group()

"""The workers of a run: the processes that run one program together, each on its own part of the data, and how they exchange tensors.

`torch.distributed` carries the tensors, by gloo or NCCL, and is started by torchrun or whatever sets the same variables of the environment.
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

_TO_COME = timedelta(minutes=5)  # for all workers to start, which takes longer than any exchange
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Workers:
    """A worker, alone: `index` 0 of a `count` of 1. What it exchanges is its own."""

    index = 0
    count = 1

    def all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> list[torch.Tensor]:
        """The sum of each tensor over all workers, or its largest or smallest elements."""
        return list(tensors)

    def start_all_reduce(self, tensors: Sequence[torch.Tensor], op: Reduction) -> torch.Tensor:
        """The elements that `all_reduce` gives, of one tensor after another: there when `finish` has returned."""
        return torch.cat([tensor.reshape(-1) for tensor in self.all_reduce(tensors, op)])

    def finish(self, exchange: torch.Tensor) -> None:
        """Wait for what `start_all_reduce` gives."""

    def all_gather(self, tensor: torch.Tensor, counts: Sequence[int] | None, axis: int) -> torch.Tensor:
        """The tensors of all workers, one after another along `axis`, of which worker i has `counts[i]`."""
        return tensor

    def reduce_scatter(self, tensor: torch.Tensor, counts: Sequence[int], axis: int) -> torch.Tensor:
        """The part of this worker, along `axis`, of the sum over all workers."""
        return tensor

    def broadcast(self, tensor: torch.Tensor, root: int) -> torch.Tensor:
        """The tensor of worker `root`."""
        return tensor

    def all_to_all(self, tensor: torch.Tensor) -> torch.Tensor:
        """Equal parts of the rows of each worker, of which this one gets those that are for it."""
        return tensor

    def least(self, number: int) -> int:
        """The least of the numbers of all workers."""
        return number if self.count == 1 else int(self.all_reduce([torch.tensor([number])], "min")[0])

    def any_says(self, flag: bool) -> bool:
        """Whether `flag` is true of one of the workers, at least."""
        return not self.least(int(not flag))


_ALONE = Workers()


class ProcessGroup(Workers):
    """Workers that are processes, connected by a group of `torch.distributed`; the default group unless one is given.

    Every method raises WorkerError where a worker has gone, or does not answer in the time that the group was made with.
    """

    def __init__(self, group: "distributed.ProcessGroup | None" = None):
        self.group = group
        self.index = distributed.get_rank(group)
        self.count = distributed.get_world_size(group)
        self._started: dict[int, distributed.Work] = {}  # by where the elements lie

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
            raise ValueError(f"worker {self.index} has {tensor.shape[axis]} along axis {axis}, where {list(counts)} is said of all")
        rows = tensor.movedim(axis, 0).contiguous()
        sent = rows.view(torch.uint8) if rows.dtype is torch.bool else rows
        parts = [sent.new_empty(count, *sent.shape[1:]) for count in counts]
        with self._named("all_gather"):
            if min(counts) == max(counts):
                distributed.all_gather(parts, sent, self.group)
            else:  # a part of its own size from each, which gathering in one call has not
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
            raise ValueError(f"{list(counts)} is said of all workers, of {len(rows)} along axis {axis}")
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
        """Raise what the engine raises as an error of ours, which says who waited."""
        try:
            yield
        except RuntimeError as error:
            raise WorkerError(
                f"worker {self.index} of {self.count}: {what} failed: {' '.join(str(error).split())[:300]}",
                hint="another worker has ended, or does not answer; all of them begin again from their last checkpoint",
            ) from error


def current_workers() -> Workers:
    """The workers that this process is one of: those that `connect` has connected, else it alone."""
    if _connected is not None:
        return _connected
    return _ALONE


_connected: ProcessGroup | None = None


def is_worker() -> bool:
    """Whether the environment says that this process is one of several workers, connected or not."""
    return "RANK" in os.environ


def is_first_worker() -> bool:
    """Whether this process is the first of its workers, or alone."""
    return os.environ.get("RANK", "0") == "0"


def connect(*, timeout: float = 30.0, backend: str | None = None) -> Workers:
    """Connect this process with the other workers of its run, and return them; alone where no variable of the environment names others.

    RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who they are, as torchrun sets them. `timeout` is for how many seconds an exchange
    waits for a worker. `backend` is one of `torch.distributed`; unless given, gloo carries what is at a processor, and NCCL what is at a
    GPU, where there is one. The second call returns the workers that there are. Raises ArgumentError for variables that are no such
    numbers, and WorkerError where not all workers come.
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
            f"RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT name a worker together, and these are {given}",
            location=here(),
            hint="torchrun sets them: torchrun --nproc-per-node 2 train.py",
        )
    if not distributed.is_initialized():
        chosen = backend or ("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        try:
            store, rank, count = next(rendezvous("env://", timeout=_TO_COME))
            store = _store_of_this_start(store, rank, count)
            distributed.init_process_group(chosen, store=store, rank=rank, world_size=count, timeout=timedelta(seconds=timeout))
        except (RuntimeError, ValueError) as error:
            raise WorkerError(f"the workers did not all come: {' '.join(str(error).split())[:300]}", location=here()) from error
    atexit.register(disconnect)  # an engine that Python takes down with it aborts the process, now and then
    _connected = ProcessGroup()
    return _connected


def _store_of_this_start(store: Store, rank: int, count: int) -> Store:
    """A part of `store` that is these workers' own. Raises RuntimeError where one of them does not come.

    torchrun keeps one store for all its restarts, so a worker might find in it the address of one that has ended. Here each worker asks
    under a name that nobody had before, and the first one answers each with the name of the part.
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
            if store.check([f"oarlock/asks/{other}"]):  # perhaps what one asked that has ended: it is asked again then
                store.set(f"oarlock/answer/{store.get(f'oarlock/asks/{other}').decode()}", own)
            if store.check([f"oarlock/knows/{own}/{other}"]):
                missing.remove(other)
        if missing and time.monotonic() > until:
            raise RuntimeError(f"worker {min(missing)} of {count} did not come in {_TO_COME.total_seconds():.0f} s")
        time.sleep(0.01)
    return PrefixStore(own, store)


def disconnect() -> None:
    """End the connection that `connect` made, so that this process is a worker alone."""
    global _connected
    if _connected is not None:
        _connected = None
        if distributed.is_initialized():
            distributed.destroy_process_group()

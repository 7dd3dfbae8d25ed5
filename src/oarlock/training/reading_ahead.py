"""Prefetching batches, in a thread or in worker processes."""

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

import numpy
from torch.utils.data import DataLoader, Dataset

from oarlock.data.table import Table
from oarlock.errors import OarlockError
from oarlock.runtime.recording import each

__all__ = ["prefetch_in_processes", "prefetch_in_thread"]

Item = TypeVar("Item")


def prefetch_in_thread(items: Iterator[Item], ahead: int) -> Generator[Item, None, None]:
    """Yield `items`, prefetched by a thread that ends when the generator is closed; at most `ahead` items wait.

    Errors in the thread are raised here.
    """
    if not ahead:
        yield from items
        return
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(ahead)
    stopped = threading.Event()

    def put(is_error: bool, value: object) -> bool:
        while not stopped.is_set():
            try:
                made.put((is_error, value), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in each("beside", "read batches ahead", items):
                if not put(False, item):
                    return
            put(True, None)
        except BaseException as error:
            put(True, error)

    thread = threading.Thread(target=make, name="oarlock prefetch", daemon=True)
    thread.start()
    try:
        while True:
            is_error, value = made.get()
            if is_error:
                if value is not None:
                    raise value
                return
            yield value
    finally:
        stopped.set()
        thread.join(0.5)  # a thread blocked on its source ends with the process


def prefetch_in_processes(table: Table, chosen: list[numpy.ndarray], workers: int, ahead: int) -> Iterator[Any]:
    """Yield the columns of the `chosen` rows of each batch in order, read by `workers` processes that prefetch `ahead` batches each.

    Errors in the processes are raised here unchanged.
    """
    loader = DataLoader(
        _Rows(table),
        batch_size=None,
        sampler=chosen,  # type: ignore[arg-type]
        num_workers=workers,
        prefetch_factor=ahead,
        collate_fn=_as_it_is,
    )
    for columns in loader:
        if isinstance(columns, OarlockError):
            raise columns
        yield columns


class _Rows(Dataset[Any]):
    """Batches of a table, indexed by row numbers."""

    def __init__(self, table: Table):
        self.table = table

    def __getitem__(self, rows: numpy.ndarray) -> Any:
        try:
            return self.table.take(rows)
        except OarlockError as error:  # PyTorch would keep only the text of a raised error
            return error


def _as_it_is(batch: object) -> object:
    return batch

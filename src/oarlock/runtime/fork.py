"""Support for `fork()`: a child process lacks its parent's other threads.

A child computes with one thread, because PyTorch's thread pool is missing. A thread that held a lock during a run would never release it,
so a fork waits for such runs, and the child finds all locks free and every scope in its state between two runs.
"""

import os
import threading
from functools import cache
from weakref import WeakSet

import torch

__all__ = ["has_lost_threads", "note_threads", "released_by_forks"]

_PATIENCE = 30  # seconds to wait for one run, which may itself wait for the forking thread

_lost = False
_adding = threading.RLock()  # held while a lock is added to _locks
_locks: "WeakSet[threading.RLock]" = WeakSet()
_held = threading.local()  # has `locks` while this thread forks


@cache
def note_threads() -> None:
    """Register the fork handlers, because this process may start threads from now on. Its children will compute with one thread.

    It is called before the first computation, not on import: a child forked earlier can start its own threads.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_wait_for_runs, after_in_parent=_release, after_in_child=_go_on_alone)


def released_by_forks(lock: threading.RLock) -> threading.RLock:
    """Register a lock that a thread may hold for a run, so that children of `fork()` find it free. Returns the lock."""
    with _adding:
        _locks.add(lock)
    return lock


def has_lost_threads() -> bool:
    """Return whether this process was forked after its parent had started threads."""
    return _lost


def _wait_for_runs() -> None:
    _held.locks = held = []
    seen: set[int] = set()
    _adding.acquire()
    while new := [lock for lock in _locks if id(lock) not in seen]:
        _adding.release()  # the awaited run may create scopes
        for lock in sorted(new, key=id):  # a fixed order, in case two threads fork
            seen.add(id(lock))
            if lock.acquire(timeout=_PATIENCE):
                held.append(lock)
        _adding.acquire()
    held.append(_adding)


def _release() -> None:
    for lock in _held.locks:
        lock.release()


def _go_on_alone() -> None:
    global _lost
    _lost = True
    _release()
    torch.set_num_threads(1)

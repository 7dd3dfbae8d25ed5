"""A child of `fork()`: its parent's other threads are not in it. Who waits for one of them waits for ever.

PyTorch's threads, among which it divides a kernel, are missed by who gives them work: a child computes with one. A thread that was in the
middle of a run, and held a lock, never gives it back: so a fork waits for such runs, and the child finds all locks free and every scope
as it is between two runs.
"""

import os
import threading
from functools import cache
from weakref import WeakSet

import torch

__all__ = ["has_lost_threads", "note_threads", "released_by_forks"]

_PATIENCE = 30  # seconds that a fork waits for one run, which may itself wait for the thread that forks

_lost = False
_adding = threading.RLock()  # held while a lock joins the following
_locks: "WeakSet[threading.RLock]" = WeakSet()
_held = threading.local()  # `locks`, while this thread forks


@cache
def note_threads() -> None:
    """From now on this process may have such threads: a child that it forks computes with one, the thread that forked.

    Called before anything is computed, not when the package is imported: who forks before that has threads of their own.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_wait_for_runs, after_in_parent=_release, after_in_child=_go_on_alone)


def released_by_forks(lock: threading.RLock) -> threading.RLock:
    """A lock that a thread may hold for a run, and that a child of `fork()` finds free."""
    with _adding:
        _locks.add(lock)
    return lock


def has_lost_threads() -> bool:
    """Whether this process is such a child."""
    return _lost


def _wait_for_runs() -> None:
    _held.locks = held = []
    seen: set[int] = set()
    _adding.acquire()
    while new := [lock for lock in _locks if id(lock) not in seen]:
        _adding.release()  # a run that we wait for may begin another scope
        for lock in sorted(new, key=id):  # two threads that fork take them in one order
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

"""A child of `fork()`: the threads among which PyTorch divides a kernel are not in it, and who gives them work waits for ever."""

import os
from functools import cache

import torch

__all__ = ["has_lost_threads", "note_threads"]

_lost = False


@cache
def note_threads() -> None:
    """From now on this process may have such threads: a child that it forks computes with one, the thread that forked.

    Called before anything is computed, not when the package is imported: who forks before that has threads of their own.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_go_on_alone)


def has_lost_threads() -> bool:
    """Whether this process is such a child."""
    return _lost


def _go_on_alone() -> None:
    global _lost
    _lost = True
    torch.set_num_threads(1)

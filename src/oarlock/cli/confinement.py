"""Confinement of a process by the system itself: for the child that opens a stranger's file. Linux alone.

Imports nothing heavy: `isolate` has to come before any library starts a thread.
"""

import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ProcessLimits", "isolate", "limit"]

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_CAPABILITY_VERSION = 0x20080522


@dataclass(frozen=True)
class ProcessLimits:
    """The resources that a child process which runs a stranger's file may use; `ol.run_untrusted(..., limits=ProcessLimits())`.

    `cpu_seconds` of all its threads together, from when it has imported what it needs; `seconds` on the clock; `memory_bytes` of
    address space, including what PyTorch itself takes; `files` open at once; `output_bytes` of the file that it returns, and
    `text_bytes` of what it prints.
    """

    cpu_seconds: int = 90
    seconds: float = 300.0
    memory_bytes: int = 6 * 2**30
    files: int = 64
    output_bytes: int = 2**30
    text_bytes: int = 2**24


def isolate() -> bool:
    """Give up privileges, those to come too, and the network; return whether the network is gone, which a system may forbid.

    It returns in another process than the one that called it, where the system gives a process numbers of its own for processes: there
    no other process can be named, and all that are started end with the first of them. The caller waits, and ends as that one does.
    To be called while the process has one thread. Raises OSError where privileges cannot be given up.
    """
    system = ctypes.CDLL(None, use_errno=True)
    tried = (_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWPID, _CLONE_NEWNET | _CLONE_NEWPID, _CLONE_NEWUSER | _CLONE_NEWNET, _CLONE_NEWNET)
    flags = next((flags for flags in tried if system.unshare(flags) == 0), 0)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    # A new namespace gives its first process every capability there, and root has those of the system: it could raise its limits.
    if system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or system.capset(header, none):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def ends_with_its_parent() -> None:
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    ends_with_its_parent()
    if flags & _CLONE_NEWPID:
        _continue_in_child(ends_with_its_parent, _end_as)  # the first process there, which signals end only from outside
        _continue_in_child(ends_with_its_parent, os._exit)
    return bool(flags)


def _continue_in_child(begin: Callable[[], None], end: Callable[[int], object]) -> None:
    """Return in a child process alone, once it did `begin`; here, wait for it, and `end` with its status: 128 + N for signal N.

    An interrupt, which all of the group are sent, is the child's to answer.
    """
    answered = signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        begin()
        signal.signal(signal.SIGINT, answered)
        return
    found = status = 0
    while found != child:  # others too, whose parent ended
        found, status = os.wait()
    end(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _end_as(status: int) -> None:
    """End this process as another one did, whose status this is."""
    if status > 128:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if status != 128 + signal.SIGKILL:
            signal.signal(status - 128, signal.SIG_DFL)
        os.kill(os.getpid(), status - 128)
    os._exit(status)


def limit(limits: ProcessLimits) -> None:
    """Limit this process, for good: from here on it writes no file. To be called once all is imported, which counts for nothing."""
    import resource  # no Windows has it

    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime) + 1 + limits.cpu_seconds
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, end, end + 1),  # SIGXCPU, then SIGKILL
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_NOFILE, limits.files, limits.files),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, allowed = resource.getrlimit(kind)
        if allowed != resource.RLIM_INFINITY:  # the caller's own limit may be the lower one
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(kind, (soft, hard))

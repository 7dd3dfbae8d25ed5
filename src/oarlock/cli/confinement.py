"""Confinement of a process by the operating system, for the child that opens an untrusted file. Linux only.

Imports nothing heavy: `isolate` must be called before any library starts a thread.
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
    """Resource limits of a child process that runs an untrusted file: `ol.run_untrusted(..., limits=ProcessLimits())`.

    `cpu_seconds`: CPU time of all threads together, counted after imports. `seconds`: wall-clock time. `memory_bytes`: address space,
    including that of PyTorch itself. `files`: number of open files. `output_bytes`: size of the returned file. `text_bytes`: size of the
    printed text.
    """

    cpu_seconds: int = 90
    seconds: float = 300.0
    memory_bytes: int = 6 * 2**30
    files: int = 64
    output_bytes: int = 2**30
    text_bytes: int = 2**24


def isolate() -> bool:
    """Drop all privileges, present and future, and the network. Return whether the network is gone, which the system may forbid.

    If the system supports PID namespaces, `isolate` returns in a new child process, which can name no other process, and whose descendants
    are killed when it ends. The calling process waits for it and exits with the same status. Must be called while the process has a single
    thread. Raises OSError if privileges cannot be dropped.
    """
    system = ctypes.CDLL(None, use_errno=True)
    tried = (_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWPID, _CLONE_NEWNET | _CLONE_NEWPID, _CLONE_NEWUSER | _CLONE_NEWNET, _CLONE_NEWNET)
    flags = next((flags for flags in tried if system.unshare(flags) == 0), 0)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    # A new namespace gives its first process all capabilities, and root has those of the system: either could raise its limits.
    if system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or system.capset(header, none):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def ends_with_its_parent() -> None:
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    ends_with_its_parent()
    if flags & _CLONE_NEWPID:
        _continue_in_child(ends_with_its_parent, _end_as)  # PID 1 of the namespace, which only outside signals can end
        _continue_in_child(ends_with_its_parent, os._exit)
    return bool(flags)


def _continue_in_child(begin: Callable[[], None], end: Callable[[int], object]) -> None:
    """Fork. In the child, call `begin` and return. In the parent, wait for the child and call `end(status)`: 128 + N for signal N.

    The child handles SIGINT, which the whole process group receives.
    """
    answered = signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        begin()
        signal.signal(signal.SIGINT, answered)
        return
    found = status = 0
    while found != child:  # orphans are reaped here too
        found, status = os.wait()
    end(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _end_as(status: int) -> None:
    """End this process with the status of another one, or with its signal."""
    if status > 128:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if status != 128 + signal.SIGKILL:
            signal.signal(status - 128, signal.SIG_DFL)
        os.kill(os.getpid(), status - 128)
    os._exit(status)


def limit(limits: ProcessLimits) -> None:
    """Limit this process permanently; it can write no file afterwards. Call it after imports, which then do not count."""
    import resource  # not available on Windows

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
        if allowed != resource.RLIM_INFINITY:  # an inherited limit may be lower
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(kind, (soft, hard))

"""Settings of a process that make kernels slow: denormal numbers, too many threads, memory that goes back and forth.

They are changed on request, by `ol.configure_process()`, `ol.train` and the command line, never by an import: a change reaches all
that runs in the process. docs/reference/process.md says what each setting is worth.
"""

import ctypes
import mmap
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.registry.range_check import require_count
from oarlock.runtime.fork import has_lost_threads, note_threads, released_by_forks

__all__ = ["ProcessSettings", "configure_process"]

_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_KEPT_BYTES = (1 << 30, 1 << 25)  # blocks up to this size come from the heap; a libc that refuses the first allows the second
_TRIMMED_BYTES = (1 << 31) - 1  # the heap shrinks when as much lies free at its top: the most that may be said
_GROWN_BYTES = 1 << 28  # the heap grows by this much more than is asked for; what is not used takes no memory
_ADVISED_BYTES = 1 << 29  # so much of the heap is to lie in large pages
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3

_lock = released_by_forks(threading.RLock())
_threads_are_chosen = False


@dataclass(frozen=True)
class ProcessSettings:
    """The settings of the process after `ol.configure_process()`.

    `flushes_denormals`: in this thread, and in those that it starts from now on. `pool_flushes_denormals`: in the threads among which
    PyTorch divides a kernel; not so where they ran before. `threads`: the number of those. `keeps_memory`: memory stays when it is freed.
    """

    flushes_denormals: bool
    pool_flushes_denormals: bool
    threads: int
    keeps_memory: bool


def configure_process(*, threads: int | None = None, keep_memory: bool = True) -> ProcessSettings:
    """Set up this process to run kernels fast; return what holds now. Call it before anything else is computed.

    It changes the whole process, all other libraries in it too:

    - numbers below 1e-38 (2e-308 in float64) become 0: processors compute with them many times more slowly;
    - a kernel is divided among `threads`. Without a number, among no more than there are cores to run on, where a processor may
      show each core twice and a container may be allowed fewer; `OMP_NUM_THREADS`, and a number given before, stay;
    - memory that is freed stays in the process for what comes next, in place of going back to the system, which clears every page that it
      returns. The process keeps the most that it ever needed. The system is asked to give it in large pages. Not so with
      `keep_memory=False`, or without glibc.

    PyTorch starts the threads of its pool for its first large kernel. They treat numbers as the thread does that starts them, and go on
    so: where they run already, they keep denormals, and the result says so; all the rest holds. Calling it again does no harm.
    Raises ArgumentError for a number of threads below 1, or above 1 in a child of `fork()` that has lost them.
    """
    global _threads_are_chosen
    if threads is not None:
        require_count("configure_process: threads", threads)
    if threads is not None and threads > 1 and has_lost_threads():
        raise ArgumentError(
            f"configure_process: {threads} threads in a child of fork(), which does not have those that its parent computed with",
            location=here(),
            hint='multiprocessing.get_context("spawn"), or fork before anything is computed',
        )
    note_threads()
    with _lock:
        flushes = torch.set_flush_denormal(True)
        if threads is not None:
            torch.set_num_threads(threads)
        elif not _threads_are_chosen and not any(os.environ.get(name) for name in _THREAD_VARIABLES):
            torch.set_num_threads(min(torch.get_num_threads(), _cores()))
        _threads_are_chosen = True
        kept = keep_memory and _keep_memory()
    return ProcessSettings(flushes, flushes and _pool_flushes(), torch.get_num_threads(), kept)


def _cores() -> int:
    """How many kernels can compute at once: cores that this process may run on, no more than a container's share of time."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = {_read(_CPUS / f"cpu{number}/topology/thread_siblings_list") or str(number) for number in usable}
    share, _, period = _read(_QUOTA).partition(" ")
    if share.isdigit() and period.isdigit():
        return max(1, min(len(cores), -(-int(share) // int(period))))
    return len(cores)


def _read(path: Path) -> str:
    """The text of a file of the system, stripped; "" where there is no such file."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _keep_memory() -> bool:
    """Let the allocator of the C library keep what is freed; whether it does."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    from_heap = any(library.mallopt(_M_MMAP_THRESHOLD, size) for size in _KEPT_BYTES)
    kept = from_heap and library.mallopt(_M_TRIM_THRESHOLD, _TRIMMED_BYTES) and library.mallopt(_M_TOP_PAD, _GROWN_BYTES)
    if kept:
        _ask_for_large_pages(library)
    return bool(kept)


def _ask_for_large_pages(library: ctypes.CDLL) -> None:
    """Take a large block from the heap, ask the system to back it with pages of 2 MiB, where these are to be asked for, and give it back.

    A stack of gates that lies in pages of 4 KiB takes more of them than a processor keeps the addresses of: each row waits for one.
    It is advice alone: memory that nobody touches is taken in no case, and a system that has no such pages goes on as before.
    """
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = library.malloc(_ADVISED_BYTES)
    if block:
        start = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
        library.madvise(start, (block + _ADVISED_BYTES - start) // mmap.PAGESIZE * mmap.PAGESIZE, mmap.MADV_HUGEPAGE)
        library.free(block)


def _pool_flushes() -> bool:
    """Whether every thread of the pool flushes: a kernel that is divided among them all makes no denormal of normal numbers."""
    normal = torch.full((torch.get_num_threads() * 2**15,), torch.finfo(torch.float32).tiny)  # 2**15: the least that a thread is given
    return not bool((normal * 0.5).view(torch.int32).any())  # as integers: this thread reads denormals as 0

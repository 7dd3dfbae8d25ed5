"""Process-wide performance settings: denormal numbers, number of threads, memory allocator.

They change only on request, through `ol.configure_process()`, `ol.train` and the command line, never on import, because they affect the
whole process. docs/reference/process.md quantifies each setting.
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
_KEPT_BYTES = (1 << 30, 1 << 25)  # blocks up to this size come from the heap; the second value is for a libc that rejects the first
_TRIMMED_BYTES = (1 << 31) - 1  # free memory at the top of the heap that triggers trimming: the maximum allowed
_GROWN_BYTES = 1 << 28  # extra growth per heap extension; unused pages take no memory
_ADVISED_BYTES = 1 << 29  # size of the heap region to back with huge pages
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3

_lock = released_by_forks(threading.RLock())
_threads_are_chosen = False


@dataclass(frozen=True)
class ProcessSettings:
    """The settings of the process after `ol.configure_process()`.

    `flushes_denormals`: in this thread and in threads that it starts later. `pool_flushes_denormals`: in PyTorch's thread pool; False if
    the pool was started before. `threads`: the size of that pool. `keeps_memory`: freed memory stays in the process.
    """

    flushes_denormals: bool
    pool_flushes_denormals: bool
    threads: int
    keeps_memory: bool


def configure_process(*, threads: int | None = None, keep_memory: bool = True) -> ProcessSettings:
    """Configure this process to run kernels fast; return the resulting settings. Call it before computing anything.

    It changes the whole process, including other libraries:

    - Numbers below 1e-38 (2e-308 in float64) become 0, because CPUs compute with them many times more slowly.
    - Kernels are divided among `threads` threads. Default: at most one per available physical core, within the container's CPU limit;
      `OMP_NUM_THREADS` and an earlier explicit number are kept.
    - Freed memory stays in the process for reuse instead of being returned to the system, which clears every page. The process keeps its
      peak
      memory. The system is asked to use huge pages. Disabled by `keep_memory=False`, or without glibc.

    PyTorch starts its thread pool for the first large kernel, and the pool inherits the denormal setting of the thread that starts it. If
    the pool is already running, it keeps denormals, and the result says so; everything else takes effect. Repeated calls are harmless.

    Raises ArgumentError for a number of threads below 1, or above 1 in a child of `fork()`, which has lost the pool.
    """
    global _threads_are_chosen
    if threads is not None:
        require_count("configure_process: threads", threads)
    if threads is not None and threads > 1 and has_lost_threads():
        raise ArgumentError(
            f"configure_process: cannot use {threads} threads in a child of fork(), which lost the thread pool of its parent",
            location=here(),
            hint='use multiprocessing.get_context("spawn"), or fork before computing anything',
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
    """Return the number of kernels that can run in parallel: usable physical cores, within the container's CPU limit."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = {_read(_CPUS / f"cpu{number}/topology/thread_siblings_list") or str(number) for number in usable}
    share, _, period = _read(_QUOTA).partition(" ")
    if share.isdigit() and period.isdigit():
        return max(1, min(len(cores), -(-int(share) // int(period))))
    return len(cores)


def _read(path: Path) -> str:
    """Return the stripped text of a system file, or "" if it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _keep_memory() -> bool:
    """Make the C library's allocator keep freed memory. Return whether that worked."""
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
    """Allocate a large heap block, advise the system to back it with 2 MiB pages, and free it.

    Large arrays in 4 KiB pages exceed the CPU's TLB, so each row waits for a page lookup. This is only advice: untouched memory is not
    allocated, and systems without huge pages ignore it.
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
    """Return whether every pool thread flushes denormals, by running a kernel on all of them that produces denormals."""
    normal = torch.full((torch.get_num_threads() * 2**15,), torch.finfo(torch.float32).tiny)  # 2**15: the minimum per thread
    return not bool((normal * 0.5).view(torch.int32).any())  # compared as integers, because this thread reads denormals as 0

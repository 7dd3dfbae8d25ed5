"""The most bytes that tensors hold at one time while something runs, and the most that a process has had."""

import re
import resource
import weakref
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode  # where PyTorch documents it

__all__ = ["peak_bytes", "process_peak"]


class _Allocations(TorchDispatchMode):
    """Each tensor that an operator of PyTorch returns, for as long as it is there; views of one memory are counted once."""

    def __init__(self):
        super().__init__()
        self.holders: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if isinstance(tensor, torch.Tensor):
                self._hold(tensor)
        return result

    def _hold(self, tensor: torch.Tensor) -> None:
        memory = tensor.untyped_storage()
        place = memory.data_ptr()
        if place not in self.holders:
            self.holders[place], self.sizes[place] = 0, memory.nbytes()
            self.now += memory.nbytes()
            self.peak = max(self.peak, self.now)
        self.holders[place] += 1
        weakref.finalize(tensor, self._release, place).atexit = False

    def _release(self, place: int) -> None:
        self.holders[place] -= 1
        if not self.holders[place]:
            del self.holders[place]
            self.now -= self.sizes.pop(place)


def peak_bytes(run: Callable[[], object]) -> int:
    """How many bytes more there are at most while `run` runs than before. What kernels take for themselves is not seen."""
    with _Allocations() as allocations:
        run()
    return allocations.peak


def process_peak() -> float:
    """The most MiB that this process has had. On Linux the kernel's own count, for the other one begins at that of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

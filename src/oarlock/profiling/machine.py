"""The peak speed of this machine, measured with large matrix products."""

import time

import torch

from oarlock.runtime.place import Place, device_of

__all__ = ["measure_peak"]

_SIZES = {"cpu": (256, 512, 1024), "cuda": (4096, 8192)}


def measure_peak(place: Place, dtype: torch.dtype = torch.float32) -> float:
    """Return the speed of the fastest product of two square matrices, in billions of floating-point operations per second.

    It takes a fifth of a second with the current number of threads. Other load on the machine lowers the result.
    """
    device = device_of(place)
    sizes = _SIZES.get(device.type, (512,))
    return max(_rate(size, dtype, device, seconds=0.2 / len(sizes)) for size in sizes)


def _rate(size: int, dtype: torch.dtype, device: torch.device, *, seconds: float) -> float:
    left, right = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))
    fastest, until, runs = float("inf"), time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        torch.mm(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        fastest = min(fastest, time.perf_counter() - begin)
        runs += 1
    return 2e-9 * size**3 / fastest

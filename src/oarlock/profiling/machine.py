"""The most that this machine can do, as it is: a large product, timed."""

import time

import torch

from oarlock.runtime.place import Place, device_of

__all__ = ["measure_peak"]

_SIZE = {"cpu": 768, "cuda": 8192}


def measure_peak(place: Place, dtype: torch.dtype = torch.float32) -> float:
    """Billions of floating point operations a second, of the fastest of some products of two square matrices, with the threads that there are.

    It takes a tenth of a second, and says what is left where others work on the machine too.
    """
    device = device_of(place)
    size = _SIZE.get(device.type, 768)
    left, right = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))
    fastest, until = float("inf"), time.perf_counter() + 0.1
    runs = 0
    while runs < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        torch.mm(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        fastest = min(fastest, time.perf_counter() - begin)
        runs += 1
    return 2e-9 * size**3 / fastest

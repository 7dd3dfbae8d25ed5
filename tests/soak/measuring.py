"""The resources that a process holds, and whether they grow."""

import gc
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

import oarlock as ol

__all__ = ["ALLOWED", "Growth", "Held", "measure"]

ALLOWED = 1.0
"""MiB per 10,000 steps."""

_SAMPLES = 50


@dataclass(frozen=True)
class Held:
    """How many of what is never to grow there are."""

    scopes: int
    tensors: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> "Held":
        gc.collect()
        kinds = [type(item) for item in gc.get_objects()]
        return cls(
            scopes=sum(issubclass(kind, ol.Scope) for kind in kinds),
            tensors=sum(issubclass(kind, torch.Tensor) for kind in kinds),
            threads=threading.active_count(),
            files=len(os.listdir("/proc/self/fd")),
        )


@dataclass(frozen=True)
class Growth:
    """How memory grew, in MiB per 10,000 steps, and what was held after the first steps and after the last."""

    slope: float
    before: Held
    after: Held

    @property
    def failures(self) -> list[str]:
        """The resources that grew more than is allowed."""
        found = [f"memory grew by {self.slope:.2f} MiB per 10,000 steps"] if self.slope > ALLOWED else []
        for kind, count in vars(self.before).items():
            if getattr(self.after, kind) != count:
                found.append(f"{kind} went from {count} to {getattr(self.after, kind)}")
        return found


def measure(step: Callable[[int], None], steps: int, warm_up: int) -> Growth:
    """Call `step` with 0, 1, 2, ... and look at the process now and then, once `warm_up` steps are over.

    The slope is that between the medians of the first and of the last third of the samples: what is taken and given back
    now and then moves neither.
    """
    for number in range(warm_up):
        step(number)
    before = Held.now()
    numbers, sizes = [], []
    every = max(1, (steps - warm_up) // _SAMPLES)
    for number in range(warm_up, steps):
        step(number)
        if (number - warm_up) % every == 0:
            numbers.append(number)
            sizes.append(_resident_mebibytes())
    third = max(1, len(sizes) // 3)
    distance = numpy.mean(numbers[-third:]) - numpy.mean(numbers[:third])
    slope = (numpy.median(sizes[-third:]) - numpy.median(sizes[:third])) / distance * 10_000
    return Growth(float(slope), before, Held.now())


def _resident_mebibytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

"""Where a program runs."""

from dataclasses import dataclass

import torch

from oarlock.errors import ArgumentError

__all__ = ["CPUPlace", "GPUPlace", "Place"]


@dataclass(frozen=True)
class CPUPlace:
    """The processor."""

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")


@dataclass(frozen=True)
class GPUPlace:
    """One GPU, by its number. Raises ArgumentError where this machine has no such GPU."""

    index: int = 0

    def __post_init__(self) -> None:
        count = torch.cuda.device_count()
        if not 0 <= self.index < count:
            raise ArgumentError(f"there is no GPU {self.index}: PyTorch sees {count} on this machine", hint="ol.CPUPlace()")

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)


Place = CPUPlace | GPUPlace

"""Where a program runs."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.location import here

__all__ = ["CPUPlace", "GPUPlace", "Place", "made_at", "one_place"]

_CPU = torch.device("cpu")
_AS_EVER = nullcontext()


@dataclass(frozen=True)
class CPUPlace:
    """The processor."""

    is_cpu: ClassVar[bool] = True

    @property
    def device(self) -> torch.device:
        return _CPU


@dataclass(frozen=True)
class GPUPlace:
    """One GPU, by its number. Raises ArgumentError where this machine has no such GPU."""

    index: int = 0
    is_cpu: ClassVar[bool] = False

    def __post_init__(self) -> None:
        count = torch.cuda.device_count()
        if not 0 <= self.index < count:
            raise ArgumentError(f"there is no GPU {self.index}: PyTorch sees {count} on this machine", hint="ol.CPUPlace()")

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)


Place = CPUPlace | GPUPlace


def made_at(place: Place) -> AbstractContextManager[object]:
    """Meanwhile kernels make tensors from nothing at `place`. It costs nothing at the processor, and some of each call elsewhere."""
    return _AS_EVER if place.is_cpu else place.device


def one_place(places: object) -> Place:
    """The place in `places`: one, or a list of one; the processor where that is None. Raises ArgumentError.

    A program runs at one place. Several want a program that is split over them, which a pass would write.
    """
    if isinstance(places, Place):
        return places
    if places is None:
        return CPUPlace()
    chosen = list(places) if isinstance(places, list | tuple) else [places]
    if len(chosen) > 1:
        raise ArgumentError(f"a program runs at one place, not at {len(chosen)}", given=[repr(place) for place in chosen])
    if not chosen or not isinstance(chosen[0], Place):
        raise ArgumentError(f"a place is ol.CPUPlace() or ol.GPUPlace(index), not {places!r}", location=here())
    return chosen[0]

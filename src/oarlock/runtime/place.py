"""Where a program runs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.location import here

__all__ = ["CPUPlace", "GPUPlace", "Place", "device_of", "is_meta", "made_at", "place_with", "places_in"]

_CPU = torch.device("cpu")
_AS_EVER = nullcontext()


class Place(ABC):
    """Where a program runs: a plain value that says which PyTorch device that is.

    A subclass with a `device` is a place too, and so a way to run at a processor of another kind that PyTorch drives; make it a frozen
    dataclass, so that places compare by their values. Where something is to run there, ArgumentError is raised of a `device` that is none
    of PyTorch's, and what `require_there` raises.
    """

    @property
    @abstractmethod
    def device(self) -> torch.device | str:
        """The device at which its tensors lie: a torch.device, or what it is called."""

    @property
    def is_cpu(self) -> bool:
        """Whether its tensors lie in the memory of the processor."""
        return device_of(self).type == "cpu"

    def require_there(self) -> None:  # noqa: B027  most places are where the program is
        """Raise ArgumentError where this machine has no such place. Nothing is asked unless a place says otherwise."""


@dataclass(frozen=True)
class CPUPlace(Place):
    """The processor."""

    is_cpu: ClassVar[bool] = True  # type: ignore[assignment]

    @property
    def device(self) -> torch.device:
        return _CPU


@dataclass(frozen=True)
class GPUPlace(Place):
    """One GPU, by its number. It is a value, and says nothing of this machine: an executor or a context that is to run there asks.

    Raises ArgumentError for what is no number from 0.
    """

    index: int = 0
    is_cpu: ClassVar[bool] = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not isinstance(self.index, int) or isinstance(self.index, bool) or self.index < 0:
            raise ArgumentError(f"a GPU has a number from 0, not {self.index!r:.60}", location=here())

    @classmethod
    def of_worker(cls) -> "GPUPlace":
        """The GPU of this process: of the workers on one machine, each has its own, by LOCAL_RANK, as torchrun sets it; else the first.

        Raises ArgumentError where LOCAL_RANK is no number from 0.
        """
        given = os.environ.get("LOCAL_RANK", "0")
        if not given.isdecimal():
            raise ArgumentError(f"LOCAL_RANK is the number of a worker on its machine, not {given!r:.60}", location=here())
        return cls(int(given))

    def require_there(self) -> None:
        count = torch.cuda.device_count()
        if not 0 <= self.index < count:
            raise ArgumentError(
                f"there is no GPU {self.index}: PyTorch sees {count} on this machine", location=here(), hint="ol.CPUPlace()"
            )

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)


def device_of(place: Place) -> torch.device:
    """The device of `place`. Raises ArgumentError where it is none of PyTorch's."""
    device = place.device
    if isinstance(device, torch.device):
        return device
    try:
        if isinstance(device, str):
            return torch.device(device)
    except RuntimeError as error:
        raise _no_device(place, device) from error
    raise _no_device(place, device)


def is_meta(place: Place) -> bool:
    """Whether tensors at `place` have types and no elements."""
    return device_of(place).type == "meta"


def _no_device(place: Place, device: object) -> ArgumentError:
    return ArgumentError(
        f"{type(place).__name__} has no device of PyTorch's, but {device!r:.60}",
        location=here(),
        contract='the device of a place is a torch.device, or its text: "cpu", "cuda:0"',
        given=[repr(place)],
    )


def made_at(place: Place) -> AbstractContextManager[object]:
    """Meanwhile kernels make tensors from nothing at `place`. It costs nothing at the processor, and some of each call elsewhere."""
    return _AS_EVER if place.is_cpu else device_of(place)


def places_in(given: object) -> tuple[Place, ...]:
    """The places that are `given`: one, or a list; the processor where that is None. Raises ArgumentError, where one is not there too."""
    if given is None:
        return (CPUPlace(),)
    wanted = given if isinstance(given, list | tuple) else [given]
    places = tuple(place for place in wanted if isinstance(place, Place))
    if not places or len(places) < len(wanted):
        raise ArgumentError(f"a place is ol.CPUPlace() or ol.GPUPlace(index), not {given!r}", location=here())
    for place in places:
        device_of(place)
        place.require_there()
    return places


def place_with(number: int, places: Sequence[Place]) -> Place:
    """The place that a program calls by this `number`, of several; where a run has one, that. Raises ArgumentError where there is none."""
    if len(places) == 1:
        return places[0]
    if number >= len(places):
        raise ArgumentError(
            f"the program has a place {number}, and this run has {len(places)} places, from 0",
            given=[f"place {at}: {place!r}" for at, place in enumerate(places)],
            hint="give one place for all of it, or as many as the program names",
        )
    return places[number]

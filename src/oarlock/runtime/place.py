"""Places: the devices on which programs run."""

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
    """A device on which programs run, as a plain value.

    To run on another kind of device that PyTorch supports, define a subclass with a `device`; make it a frozen dataclass, so that places
    compare by value. Running there raises ArgumentError if `device` is not a PyTorch device, and the errors of `require_there`.
    """

    @property
    @abstractmethod
    def device(self) -> torch.device | str:
        """The device that stores the tensors: a torch.device or its name."""

    @property
    def is_cpu(self) -> bool:
        """Whether tensors are stored in CPU memory."""
        return device_of(self).type == "cpu"

    def require_there(self) -> None:  # noqa: B027  most places are always available
        """Raise ArgumentError if this machine has no such place. The default accepts every place."""


@dataclass(frozen=True)
class CPUPlace(Place):
    """The CPU."""

    is_cpu: ClassVar[bool] = True  # type: ignore[assignment]

    @property
    def device(self) -> torch.device:
        return _CPU


@dataclass(frozen=True)
class GPUPlace(Place):
    """One GPU, by index. It is a plain value: whether the machine has this GPU is checked by the executor or context that uses it.

    Raises ArgumentError for an index that is not an integer from 0.
    """

    index: int = 0
    is_cpu: ClassVar[bool] = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not isinstance(self.index, int) or isinstance(self.index, bool) or self.index < 0:
            raise ArgumentError(f"a GPU index must be an integer >= 0, not {self.index!r:.60}", location=here())

    @classmethod
    def of_worker(cls) -> "GPUPlace":
        """Return the GPU of this worker process: the index in LOCAL_RANK, as set by torchrun, or 0.

        Raises ArgumentError if LOCAL_RANK is not an integer from 0.
        """
        given = os.environ.get("LOCAL_RANK", "0")
        if not given.isdecimal():
            raise ArgumentError(f"LOCAL_RANK must be the index of a worker on its machine, not {given!r:.60}", location=here())
        return cls(int(given))

    def require_there(self) -> None:
        count = torch.cuda.device_count()
        if not 0 <= self.index < count:
            raise ArgumentError(
                f"there is no GPU {self.index}: PyTorch sees {count} on this machine", location=here(), hint="use ol.CPUPlace()"
            )

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)


def device_of(place: Place) -> torch.device:
    """Return the torch device of `place`. Raises ArgumentError if it has none."""
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
    """Return whether tensors at `place` have types but no elements."""
    return device_of(place).type == "meta"


def _no_device(place: Place, device: object) -> ArgumentError:
    return ArgumentError(
        f"the device of {type(place).__name__} is not a PyTorch device: {device!r:.60}",
        location=here(),
        contract='a device is a torch.device or its name: "cpu", "cuda:0"',
        given=[repr(place)],
    )


def made_at(place: Place) -> AbstractContextManager[object]:
    """Return a context in which kernels create tensors at `place`. Free for the CPU; elsewhere it costs a little per call."""
    return _AS_EVER if place.is_cpu else device_of(place)


def places_in(given: object) -> tuple[Place, ...]:
    """Return the places in an argument: one place, a list of them, or None for the CPU. Raises ArgumentError, also for a missing device."""
    if given is None:
        return (CPUPlace(),)
    wanted = given if isinstance(given, list | tuple) else [given]
    places = tuple(place for place in wanted if isinstance(place, Place))
    if not places or len(places) < len(wanted):
        raise ArgumentError(f"a place must be ol.CPUPlace() or ol.GPUPlace(index), not {given!r}", location=here())
    for place in places:
        device_of(place)
        place.require_there()
    return places


def place_with(number: int, places: Sequence[Place]) -> Place:
    """Return the place with index `number`; if the run has only one place, that one. Raises ArgumentError if there is none."""
    if len(places) == 1:
        return places[0]
    if number >= len(places):
        raise ArgumentError(
            f"the program uses place {number}, but this run has only {len(places)} places, numbered from 0",
            given=[f"place {at}: {place!r}" for at, place in enumerate(places)],
            hint="pass one place for everything, or as many as the program uses",
        )
    return places[number]

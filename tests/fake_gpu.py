"""A GPU that is not there: PyTorch's fake tensors have its device and a shape, and no elements.

Kernels that mix places are refused by them as they would be by a GPU. What waits for a GPU, because the host must know an element or copies
one, is noted, and given an answer, so that one run shows all of it. What gives a number of elements that nobody knows is refused.
"""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import oarlock as ol

__all__ = ["Wait", "stand_in", "waits_noted"]

_ASKING = {"_local_scalar_dense", "item", "is_nonzero", "equal"}
_COPYING = {"_to_copy", "copy_"}


def stand_in(monkeypatch: pytest.MonkeyPatch) -> ol.GPUPlace:
    """A place whose tensors are fake; `ol.GPUPlace(1)` is another.

    Where PyTorch is built without CUDA, some methods ask for a GPU before they call an op, which would not: here they are the op.
    """
    aten = torch.ops.aten
    indexed = torch.Tensor.__getitem__

    def item(self, index):
        given, axis = self, 0
        indices = index if isinstance(index, tuple) else (index,)
        if any(not (each is Ellipsis or each is None or isinstance(each, int | slice)) for each in indices):
            if all(isinstance(each, torch.Tensor) or (isinstance(each, slice) and each == slice(None)) for each in indices):
                return aten.index(self, [each if isinstance(each, torch.Tensor) else None for each in indices])
            return indexed(self, index)
        for each in indices:
            if each is Ellipsis:
                axis += given.dim() - axis - sum(other is not None for other in indices[indices.index(Ellipsis) + 1 :])
            elif each is None:
                given, axis = given.unsqueeze(axis), axis + 1
            elif isinstance(each, int):
                given = given.select(axis, each)
            else:
                given, axis = aten.slice(given, axis, each.start, each.stop, each.step or 1), axis + 1
        return given

    def assign(self, index, value):
        if isinstance(index, torch.Tensor):
            aten.index_put_(self, [index], value)
        else:
            aten.copy_(item(self, index), value)  # which is a view: by integers and slices

    monkeypatch.setattr(torch.Tensor, "__getitem__", item)
    monkeypatch.setattr(torch.Tensor, "__setitem__", assign)
    for name in ("copy_", "contiguous", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, _called(getattr(aten, name)))
    monkeypatch.setattr(torch.Tensor, "__invert__", _called(aten.bitwise_not))
    monkeypatch.setattr(torch.Tensor, "__int__", lambda self: int(self.item()))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return ol.GPUPlace(0)


def _called(function):
    return lambda *given, **named: function(*given, **named)


class Wait(NamedTuple):
    """That the host waited, since it asked for an element or copied some: on which line of a plan, how deep in loops; or on none."""

    why: str
    line: str
    depth: int


@contextmanager
def waits_noted() -> Iterator[list[Wait]]:
    """Meanwhile tensors are fake; what waits for them is noted."""
    notes: list[Wait] = []
    with FakeTensorMode(allow_non_fake_inputs=True), _Noting(notes):
        yield notes


class _Noting(TorchDispatchMode):
    def __init__(self, notes: list[Wait]):
        super().__init__()
        self.notes = notes

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        given = [item for item in args if isinstance(item, torch.Tensor)]
        if name in _ASKING:
            if given[0].device.type != "cpu":
                self.notes.append(_wait("asked"))
            elif getattr(given[0], "constant", self) is not None:  # the fake knows
                return function(*args, **kwargs or {})
            dtype = given[0].dtype
            return False if name == "is_nonzero" or dtype is torch.bool else 1e6 if dtype.is_floating_point else 1  # a sum, say
        if name.startswith("_fused_") and "tensor_lr" in str(function):  # has no form without elements
            _require_one_place([*(item for items in args for item in items), (kwargs or {})["lr"]])
            return None
        result = function(*args, **kwargs or {})
        if name in _COPYING and len({item.device.type for item in (*given, result)}) > 1:
            self.notes.append(_wait("copied"))
        return result


def _require_one_place(tensors: list[object]) -> None:
    places = {item.device for item in tensors if isinstance(item, torch.Tensor)}
    if len(places) > 1:
        raise RuntimeError(f"tensors at {len(places)} places, expected the same device")


def _wait(why: str) -> Wait:
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<plan"):
        frame = frame.f_back
    if frame is None:
        return Wait(why, "", 0)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).rstrip()
    return Wait(why, line.strip(), (len(line) - len(line.lstrip())) // 4 - 1)

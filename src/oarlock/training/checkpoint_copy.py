"""The files of a checkpoint, as its writer is given them: copied in the step, into memory where they lie as on the disk."""

import json
import mmap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import foreach_copy_
from oarlock.io.container import Layout, lay_out
from oarlock.training.checkpoint_process import CheckpointWriter

__all__ = ["CheckpointCopy"]

_LINE = 64  # bytes, at which a file begins
_REQUEST = 2**12  # bytes of a request beside its files


class _Placed(NamedTuple):
    """A file of tensors: those in the memory, and the text that says where the file lies."""

    tensors: list[torch.Tensor]
    text: str


class CheckpointCopy:
    """The files of the newest checkpoint in the memory of a writer. Where they lie is computed once: each copy is one call for a file."""

    def __init__(self, writer: CheckpointWriter):
        self._writer = writer
        self._memory: mmap.mmap | None = None
        self._kinds: dict[str, list[tuple[str, torch.dtype, torch.Size]]] = {}  # of the tensors of each file
        self._layouts: dict[str, Layout] = {}
        self._placed: dict[str, _Placed] = {}
        self._end = self._told = 0  # where the files of tensors end, and the bytes of a request that tell of them, or a few more

    def write(self, models: Mapping[str, Mapping[str, torch.Tensor]], state: bytes, request: Mapping[str, object]) -> None:
        """Copy files of tensors, of which the first is a model, and the state of the run, and have them written by a request.

        Raises OSError.
        """
        kinds = {name: [(key, held.dtype, held.shape) for key, held in tensors.items()] for name, tensors in models.items()}
        if kinds != self._kinds:
            self._placed, self._kinds = {}, kinds
            self._layouts = {name: lay_out(tensors, model=not number) for number, (name, tensors) in enumerate(models.items())}
            self._end = sum(_whole(layout.size) for layout in self._layouts.values())
            self._told = sum(len(json.dumps([name, _seal(layout)])) + _LINE for name, layout in self._layouts.items())
        end, size = self._end, len(state)
        memory = self._writer.reserve(end + size + self._told + _REQUEST, spare=size)  # what a run has measured grows
        if memory is not self._memory or not self._placed:
            self._memory = memory
            self._place(memory)
        for name, tensors in models.items():
            _copy(self._placed[name].tensors, tensors)
        memory[end : end + size] = state
        texts = [placed.text for placed in self._placed.values()]
        self._writer.begin({**request, "state": [end, size]}, f"[{', '.join(texts)}]", _whole(end + size))

    def _place(self, memory: mmap.mmap) -> None:
        self._placed, begin = {}, 0
        for name, layout in self._layouts.items():
            memory[begin : begin + len(layout.header)] = layout.header
            tensors = [_tensor(memory, begin + layout.places[key][0], dtype, shape) for key, dtype, shape in self._kinds[name]]
            self._placed[name] = _Placed(tensors, json.dumps([name, begin, layout.size, _seal(layout)]))
            begin += _whole(layout.size)


def _seal(layout: Layout) -> Sequence[object] | None:
    return [layout.digest, layout.digested] if layout.digest else None


def _whole(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _tensor(memory: mmap.mmap, begin: int, dtype: torch.dtype, shape: torch.Size) -> torch.Tensor:
    """A tensor in the memory, from a byte on."""
    if not shape.numel():
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=shape.numel(), offset=begin).view(shape)  # of complex numbers too: as their parts


@torch.no_grad()
def _copy(places: Sequence[torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    if all(tensor.is_cpu for tensor in tensors.values()):
        foreach_copy_(list(places), list(tensors.values()))
    else:
        for place, tensor in zip(places, tensors.values(), strict=True):
            place.copy_(tensor)

"""Copying the files of a checkpoint into the memory of its writer, in the layout that they have on disk."""

import json
import mmap
from collections.abc import Mapping, Sequence

import torch

from oarlock.backend.torch.private import foreach_copy_
from oarlock.io.container import Layout, lay_out
from oarlock.training.checkpoint_process import CheckpointWriter

__all__ = ["CheckpointCopy"]

_LINE = 64  # bytes: the alignment of files


class CheckpointCopy:
    """The files of the newest checkpoint, in the memory of a writer. The layout is computed once, so each copy is one call per file."""

    def __init__(self, writer: CheckpointWriter):
        self._writer = writer
        self._memory: mmap.mmap | None = None
        self._kinds: dict[str, list[tuple[str, torch.dtype, torch.Size]]] = {}  # of the tensors of each file
        self._layouts: dict[str, Layout] = {}
        self._begins: dict[str, int] = {}  # the offset of each file
        self._end = 0  # of the tensor files
        self._files = "[]"  # their description in a request, as JSON
        self._places: dict[str, list[torch.Tensor]] = {}  # of the tensors of each file, in the memory

    def write(self, models: Mapping[str, Mapping[str, torch.Tensor]], state: bytes, request: Mapping[str, object]) -> None:
        """Copy tensor files, the first of which is a model, and the state of the run, and start writing them with `request`.

        Raises OSError.
        """
        kinds = {name: [(key, held.dtype, held.shape) for key, held in tensors.items()] for name, tensors in models.items()}
        if kinds != self._kinds:
            self._memory, self._kinds = None, kinds
            self._lay_out(models)
        size, at = len(state), self._end + _whole(len(state))
        text = f"{json.dumps({**request, 'state': [self._end, size]})[:-1]}, {json.dumps('files')}: {self._files}}}".encode()
        memory = self._writer.reserve(at + len(text), spare=size)  # the recorded history grows
        if memory is not self._memory:
            self._place(memory)
        for name, tensors in models.items():
            _copy(self._places[name], tensors)
        memory[self._end : self._end + size] = state
        memory[at : at + len(text)] = text
        self._writer.begin(at, len(text))

    def _lay_out(self, models: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        self._layouts, self._begins, self._end, files = {}, {}, 0, []
        for number, (name, tensors) in enumerate(models.items()):
            layout = self._layouts[name] = lay_out(tensors, model=not number)
            self._begins[name] = self._end
            files.append([name, self._end, layout.size, _seal(layout)])
            self._end += _whole(layout.size)
        self._files = json.dumps(files)

    def _place(self, memory: mmap.mmap) -> None:
        self._memory, self._places = memory, {}
        for name, layout in self._layouts.items():
            begin = self._begins[name]
            memory[begin : begin + len(layout.header)] = layout.header
            self._places[name] = [_tensor(memory, begin + layout.places[key][0], dtype, shape) for key, dtype, shape in self._kinds[name]]


def _seal(layout: Layout) -> Sequence[object] | None:
    return [layout.digest, layout.digested] if layout.digest else None


def _whole(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _tensor(memory: mmap.mmap, begin: int, dtype: torch.dtype, shape: torch.Size) -> torch.Tensor:
    """Return a tensor that shares the memory from byte `begin` on."""
    if not shape.numel():
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=shape.numel(), offset=begin).view(shape)  # also for complex dtypes


@torch.no_grad()
def _copy(places: Sequence[torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    if all(tensor.is_cpu for tensor in tensors.values()):
        foreach_copy_(list(places), list(tensors.values()))
    else:
        for place, tensor in zip(places, tensors.values(), strict=True):
            place.copy_(tensor)

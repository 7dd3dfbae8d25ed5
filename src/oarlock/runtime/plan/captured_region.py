"""A region of a plan that was captured as a CUDA graph, once for each way in which what it is given lies in memory."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from oarlock.backend.torch.private import foreach_copy_
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.plan.by_signature import BySignature, Function
from oarlock.runtime.plan.cuda_graphs import CudaGraphs
from oarlock.runtime.plan.regions import Region, Training

__all__ = ["CapturedRegion"]

_Groups = list[list[int]]


class CapturedRegion(BySignature):
    """A region that is captured.

    Before: `a = tanh_1(x)`, `b = exp_2(a)`. After: `[b] = region_3(None, x)`, where the host launches both kernels at once.

    For each signature the kernels are run once as they are, captured in the next call, and replayed from then on: the same kernels, on
    what lies in memory in the same way. A graph reads and writes where it did when it was captured. So what is given, parameters too,
    is copied to where the graph reads it, and what it computes is copied from where it wrote, since that may be kept, and be written
    over.

    What lies elsewhere than at the GPU is read by the host, in no graph: with such an input the kernels are run as they are. So they are,
    for a signature, once they could not be captured.
    """

    def __init__(self, region: Region, catalogue: Catalogue, device: torch.device):
        super().__init__(region, catalogue, device)
        self._device = device
        self._graphs = CudaGraphs(device)

    def _make(self, context: Training, given: Sequence[Any]) -> Function:
        if any(tensor.device != self._device for tensor in given[: self._count]):
            return self._by_kernels(context)
        return _Captured(partial(self._run, context), self._graphs, self._count, len(self._region.writes))


class _Captured:
    """The results of `run` on values of one signature. The first `read` values are tensors, and so are the first `written` results."""

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]], graphs: CudaGraphs, read: int, written: int):
        self._run = run
        self._graphs = graphs
        self._read = read
        self._written = written
        self._is_warm = False
        self._cannot = False  # be captured
        self._inputs: list[torch.Tensor] = []  # where the graph reads
        self._alike: tuple[_Groups, _Groups] = [], []  # of the inputs, of the results
        self._shapes: list[torch.Size] = []  # results that are no tensors
        self._replay: Callable[[], list[torch.Tensor]] | None = None

    def __call__(self, *given: Any) -> list[Any]:
        if not self._cannot:
            with self._graphs.turn():
                if not self._is_warm:
                    return self._warm_up(given)
                if self._replay is None and not self._cannot:
                    self._capture(given)
                if self._replay is not None:
                    of_inputs, of_results = self._alike
                    _copy(self._inputs, given, of_inputs)
                    return [*_copies(self._replay(), of_results), *self._shapes]
        return self._run(given)

    def _warm_up(self, given: Sequence[Any]) -> list[Any]:
        results = self._graphs.warm_up(partial(self._run, given))
        self._is_warm = True
        tensors = results[: self._written]
        return [*_copies(tensors, _alike(tensors)), *results[self._written :]]

    def _capture(self, given: Sequence[Any]) -> None:
        inputs, shapes = [_empty_like(tensor) for tensor in given[: self._read]], given[self._read :]
        results: list[Any] = []

        def compute() -> list[torch.Tensor]:
            results[:] = self._run([*inputs, *shapes])
            return results[: self._written]

        try:
            replay = self._graphs.capture(compute)
        except Exception:  # what it is does not matter: the kernels will tell
            self._cannot = True
            return
        self._inputs = inputs
        self._alike = _alike(inputs), _alike(results[: self._written])
        self._shapes = results[self._written :]
        self._replay = replay


def _alike(tensors: Sequence[torch.Tensor]) -> _Groups:
    """The numbers of the tensors, of those together that PyTorch may copy by one kernel."""
    groups: dict[object, list[int]] = {}
    for number, tensor in enumerate(tensors):
        groups.setdefault((tensor.dtype, tensor.device, tensor.is_contiguous()), []).append(number)
    return list(groups.values())


def _copies(tensors: Sequence[torch.Tensor], groups: _Groups) -> list[torch.Tensor]:
    """Tensors in memory of their own, where they lie as `tensors` do in theirs."""
    copies = [_empty_like(tensor) for tensor in tensors]
    _copy(copies, tensors, groups)
    return copies


def _copy(into: Sequence[torch.Tensor], tensors: Sequence[Any], groups: _Groups) -> None:
    """Copy tensors into others that lie in memory as they do."""
    for numbers in groups:
        places, sources = ([_once(each[number]) for number in numbers] for each in (into, tensors))
        foreach_copy_(places, sources)


def _empty_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _once(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor: one of those that are one place in memory, along an axis."""
    if 0 in tensor.stride():
        for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if stride == 0 and size > 1:
                tensor = tensor.narrow(axis, 0, 1)
    return tensor

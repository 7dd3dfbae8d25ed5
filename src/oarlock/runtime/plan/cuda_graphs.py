"""The work of a GPU, captured as a CUDA graph and replayed: the one place that calls PyTorch for that."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch

__all__ = ["CudaGraphs"]

_Result = TypeVar("_Result")


class CudaGraphs:
    """The graphs of a region at one GPU, `device`. Its methods are called in `turn`.

    Nothing of CUDA is asked for before.
    """

    _one_at_a_time = threading.Lock()  # in a process: PyTorch captures no two graphs at once
    _last: ClassVar[dict[torch.device, torch.cuda.Stream]] = {}  # where the last turn at each GPU launched

    def __init__(self, device: torch.device):
        self._device = device

    @cached_property
    def _side(self) -> torch.cuda.Stream:
        return torch.cuda.Stream(self._device)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Meanwhile nobody else captures or replays. What is launched comes after what was launched in the turn before, in any thread.

        So the memory of a graph, and what libraries keep for the stream of captures, is used by one replay at a time.
        """
        with self._one_at_a_time:
            stream = torch.cuda.current_stream(self._device)
            last = self._last.get(self._device)
            if last is not None and last != stream:
                stream.wait_stream(last)
            self._last[self._device] = stream
            yield

    def warm_up(self, function: Callable[[], _Result]) -> _Result:
        """Return the result of `function`, run on the stream where it will be captured: libraries set themselves up at a first call."""
        stream = torch.cuda.current_stream(self._device)
        self._side.wait_stream(stream)
        try:
            with torch.cuda.stream(self._side):
                return function()
        finally:
            stream.wait_stream(self._side)

    def capture(self, function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        """Capture what `function` launches, which is not computed yet.

        What this returns computes it, in the current stream, and returns what `function` has: the same tensors each time. It raises what
        `function` raises, and what PyTorch does where something cannot be captured.
        """
        graph = torch.cuda.CUDAGraph()
        with (
            torch.cuda.stream(self._side),  # which is left whatever happens; the next one stays where a capture fails to end
            torch.cuda.graph(graph, stream=self._side, capture_error_mode="thread_local"),
        ):
            results = function()

        def replay() -> list[Any]:
            graph.replay()
            return results

        return replay

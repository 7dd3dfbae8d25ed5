"""Ways to get hold of a value, and to keep it."""

import types
from collections.abc import Callable, Iterator

import numpy
import torch

import oarlock as ol

__all__ = ["HOLDS", "READS", "Held", "tensors_of"]


class Held:
    """A value that somebody holds: how to look at it, its content when it was last written, and the `memory` that it lies in.

    `memory` is a token: the one of the variable whose value it is, until a run gives that variable another.
    """

    def __init__(
        self, name: str, look: Callable[[], numpy.ndarray], memory: object, writable: torch.Tensor | None = None, *, is_saved: bool = False
    ):
        self.name = name
        self.look = look
        self.memory = memory
        self.writable = writable
        self.is_saved = is_saved  # by autograd, which refuses what was written over
        self.expected = look().copy()

    def has_changed(self) -> bool:
        return not numpy.array_equal(self.look(), self.expected, equal_nan=True)


READS: dict[str, Callable[[ol.Scope, str], torch.Tensor]] = {
    "item": lambda scope, name: scope[name],
    "get": lambda scope, name: scope.get(name),
    "value": lambda scope, name: scope.var(name).value,
    "typed": lambda scope, name: scope.var(name).get(torch.Tensor),
    "mutable": lambda scope, name: scope.var(name).get_mutable(torch.Tensor),
}


def _whole(array: numpy.ndarray) -> Callable[[], numpy.ndarray]:
    return lambda: array


def _in_list(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    kept = [value]
    return lambda: kept[0].detach().numpy()


def _in_closure(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    return lambda: value.detach().numpy()


def _storage(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    storage, like = value.untyped_storage(), (value.dtype, value.storage_offset(), value.shape, value.stride())
    return lambda: torch.empty(0, dtype=like[0]).set_(storage, *like[1:]).numpy()


def _graph(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    """A graph that has saved the value: it is the gradient."""
    leaf = torch.ones_like(value, requires_grad=True)
    product = (leaf * value).sum()
    return lambda: torch.autograd.grad(product, leaf, retain_graph=True)[0].numpy()


def _parameter(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    parameter = torch.nn.Parameter(value)
    return lambda: parameter.detach().numpy()


def _other_scope(value: torch.Tensor) -> Callable[[], numpy.ndarray]:
    scope = ol.Scope()
    scope.set("w", value)
    return lambda: scope.var("w").held.numpy()  # type: ignore[attr-defined]


HOLDS: dict[str, Callable[[torch.Tensor], Callable[[], numpy.ndarray]]] = {
    "list": _in_list,
    "closure": _in_closure,
    "dlpack": lambda value: (lambda held: lambda: held.numpy())(torch.from_dlpack(value)),
    "numpy-dlpack": lambda value: _whole(numpy.from_dlpack(value)),
    "numpy": lambda value: _whole(value.numpy()),
    "numpy-view": lambda value: _whole(value.numpy()[..., :1]),
    "view": lambda value: (lambda view: lambda: view.numpy())(value[:1]),
    "storage": _storage,
    "graph": _graph,
    "parameter": _parameter,
    "scope": _other_scope,
}


def tensors_of(error: BaseException) -> Iterator[torch.Tensor]:
    """The tensors that an exception holds: those that the frames of its traceback name, and those of what caused it."""
    while error is not None:
        trace: types.TracebackType | None = error.__traceback__
        while trace is not None:
            for value in list(trace.tb_frame.f_locals.values()):
                items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
                yield from (item for item in items if isinstance(item, torch.Tensor))
            trace = trace.tb_next
        error = error.__cause__  # type: ignore[assignment]

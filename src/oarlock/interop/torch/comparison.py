"""Compare an imported program with PyTorch's own results."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from oarlock.backend.torch.private import pytree
from oarlock.interop.torch.imported import ImportedModule
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.scope import Scope

__all__ = ["Difference", "compare_with_torch", "draws_numbers"]

_ROWS = 3  # the value of every symbol


@dataclass(frozen=True)
class Difference:
    """The difference of one output from PyTorch's: the largest difference and the largest value.

    `largest` is None if dtype or shape differ.
    """

    output: str
    largest: float | None
    magnitude: float


def draws_numbers(model: ImportedModule) -> bool:
    """Return whether the module draws random numbers; PyTorch and Oarlock draw different ones."""
    nodes = model.graph.exported.program.graph.nodes
    return any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in nodes)


def compare_with_torch(model: ImportedModule, *, seed: int = 0) -> Iterator[Difference]:
    """Run `model` and its graph on random inputs, in training as exported, and yield the difference of each output."""
    generator = torch.Generator().manual_seed(seed)
    given = [_random(item.traced, generator) if item.is_tensor else item.traced for item in model.graph.inputs]
    spec = model.graph.exported.program.call_spec.in_spec
    assert spec is not None
    args, kwargs = pytree.tree_unflatten(given, spec)
    with torch.no_grad():
        expected, _ = pytree.tree_flatten(model.graph.exported.program.module()(*args, **kwargs))
    feed = {
        var.name: value for (name, var), value in zip(model.inputs.items(), (x for x in given if isinstance(x, torch.Tensor)), strict=True)
    }
    scope = init(model.program, Scope())
    found = Executor().run(model.program, feed, list(model.program.targets), scope=scope, training=True, return_numpy=False)
    tensors = dict(zip(model.graph.labels, expected, strict=True))
    for label, value in zip(model.program.targets, found, strict=True):
        other = tensors[label]
        assert isinstance(value, torch.Tensor)
        fits = value.dtype is other.dtype and value.shape == other.shape
        wide = torch.float64 if value.dtype.is_floating_point else torch.int64
        largest = float((value.to(wide) - other.to(wide)).abs().max()) if fits and value.numel() else 0.0
        yield Difference(label, largest if fits else None, float(other.to(wide).abs().max()) if other.numel() else 0.0)


def _random(traced: object, generator: torch.Generator) -> torch.Tensor:
    assert isinstance(traced, torch.Tensor)
    shape = [size if isinstance(size, int) else _ROWS for size in traced.shape]
    if traced.dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(traced.dtype)
    return torch.randint(0, 2, shape, generator=generator).to(traced.dtype)

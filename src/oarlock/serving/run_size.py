"""The size of a run, computed from a request before any kernel runs: output shapes, and the bytes of all values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import evaluate, solve, solve_shape
from oarlock.ir.traversal import needed_ops, walk_ops
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.value_sizes import find_size_prediction, is_bounded_by_inputs

__all__ = ["RunSize", "RunSizes", "computes_sizes"]

_REMEMBERED = 256  # sets of sizes; most requests repeat a few


class RunSize(NamedTuple):
    """The shapes of the outputs by label (None for an unknown size), and the peak `bytes` of live values."""

    shapes: Mapping[str, tuple[int | None, ...]]
    bytes: int


@dataclass(frozen=True)
class _Shape:
    """A value that is not computed yet, with a known shape. A meta tensor would import large parts of PyTorch."""

    shape: torch.Size

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class _Line:
    """A sequence of ops: for each, the variables it writes, its blocks, and the variables it reads last."""

    steps: Sequence[tuple[tuple[Var, ...], tuple["_Line", ...], tuple[Var, ...]]]

    def peak(self, known: Mapping[str, int]) -> int:
        """Return the peak bytes of live values for the known sizes; an unknown size counts as 1."""
        live = most = 0
        for written, inner, released in self.steps:
            live += sum(_bytes_of(var, known) for var in written)
            most = max(most, live + max((line.peak(known) for line in inner), default=0))
            live -= sum(_bytes_of(var, known) for var in released)
        return most


class RunSizes:
    """Computes the sizes of inference runs of a program. Parameters are not counted, because they are in memory anyway.

    A size that depends on values is known if these values are fed, such as the longest of some sequences.
    """

    def __init__(self, program: Program, catalogue: Catalogue):
        self._inputs = {var.name: var for var in program.main.inputs}
        self._targets = dict(program.targets)
        ops = needed_ops(program.main.ops, program.targets.values())
        self._line = _line(ops, set(program.targets.values()))
        found = [(op, find_size_prediction(catalogue.get(op.type)), catalogue.get(op.type)) for op in ops]
        self._predictions = [(op, function, operator) for op, function, operator in found if function is not None]
        self._sized = lru_cache(_REMEMBERED)(self._compute)

    def of(self, feed: Mapping[str, torch.Tensor]) -> RunSize:
        """Return the size of a run with these input tensors, which match their declarations."""
        known: dict[str, int] = {}
        for name, tensor in feed.items():
            known |= solve_shape(self._inputs[name].shape or (), tensor.shape)
        for op, function, operator in self._predictions:
            unknown = {size for var in op.writes for size in var.shape or () if evaluate(size, known) is None}
            given = {slot: [self._value(var, feed, known) for var in vars] for slot, vars in op.inputs.items()}
            if len(unknown) == 1 and all(value is not None for values in given.values() for value in values):
                with suppress(Exception):  # invalid values, which the run will report, or a missing input
                    name, value = solve(next(iter(unknown)), function(*operator.arguments(given), **op.attributes)) or ("", None)
                    known |= {} if value is None else {name: value}
        size = self._sized(tuple(sorted(known.items())))
        return size._replace(bytes=size.bytes + sum(tensor.nbytes for tensor in feed.values()))

    def _value(self, var: Var, feed: Mapping[str, torch.Tensor], known: Mapping[str, int]) -> "torch.Tensor | _Shape | None":
        """Return the fed tensor of a variable, else its shape, or None if that is unknown."""
        if self._inputs.get(var.name) is var and var.name in feed:
            return feed[var.name]
        sizes = [evaluate(size, known) for size in var.shape or ()]
        return None if None in sizes else _Shape(torch.Size(sizes))  # type: ignore[arg-type]

    def _compute(self, sizes: tuple[tuple[str, int], ...]) -> RunSize:
        known = dict(sizes)
        shapes = {label: tuple(evaluate(size, known) for size in var.shape or ()) for label, var in self._targets.items()}
        return RunSize(shapes, self._line.peak(known))


def computes_sizes(program: Program, catalogue: Catalogue) -> bool:
    """Return whether computed values decide how much memory some op takes, so that the size of a run is unknown before it."""
    inputs = set(program.main.inputs)
    for op in walk_ops(needed_ops(program.main.ops, program.targets.values())):
        operator = catalogue.get(op.type)
        if is_bounded_by_inputs(operator):
            continue
        if any(isinstance(value, Var) for value in op.attributes.values()):
            return True
        read = [var for slot in operator.signature.inputs if slot.dtype != "shape" for var in op.inputs.get(slot.name, ())]
        if not inputs.issuperset(var for var in read if not var.dtype.is_floating):
            return True
    return False


def _line(ops: Sequence[Op], kept: set[Var]) -> _Line:
    """Return the ops as a line; `kept` variables are read after it."""
    last = {var: number for number, op in enumerate(ops) for var in (*op.writes, *op.reads)}
    made = {var for op in ops for var in op.writes}
    released: list[list[Var]] = [[] for _ in ops]
    for var, number in last.items():
        if var in made and var not in kept:
            released[number].append(var)
    return _Line([
        (tuple(dict.fromkeys(op.writes)), tuple(_line(block.ops, set(block.outputs)) for block in op.blocks), tuple(released[number]))
        for number, op in enumerate(ops)
    ])  # fmt: skip


def _bytes_of(var: Var, known: Mapping[str, int]) -> int:
    return var.dtype.itemsize * math.prod(_counted(var.shape or (), known))


def _counted(shape: Iterable[int | str], known: Mapping[str, int]) -> Iterable[int]:
    return (size for size in (evaluate(size, known) for size in shape) if size is not None)

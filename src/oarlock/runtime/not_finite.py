"""Finds the operator that first produced a NaN or infinity, by interpreting one step without writing anything."""

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from functools import reduce
from operator import or_

import torch

from oarlock.errors import OarlockError
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.context import Context
from oarlock.runtime.executor import Executor
from oarlock.runtime.interpreter import Interpreter, path_of
from oarlock.runtime.place import Place
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.scope import Scope
from oarlock.tensor.stacks import leaves

__all__ = ["Kind", "Origin", "describe_range", "find_origin", "kind_of"]


class Kind(Flag):
    """The kinds of numbers in a value: finite, infinite or NaN."""

    FINITE = 0
    INFINITE = 1
    NAN = 2


@dataclass(frozen=True)
class Origin:
    """The op that first produced a NaN or infinity. `path` is the scope in which it ran, such as `main/rnn_0/3`.

    `given` describes its inputs and `made` its outputs, one line each; `number` is nan, inf or -inf. `followed_by` is the op that turned
    the infinity into a NaN, if any.
    """

    op: Op
    path: str
    given: tuple[str, ...]
    made: tuple[str, ...]
    number: str
    followed_by: "Origin | None" = None

    @property
    def text(self) -> str:
        """A description, `log made -inf`, with the part of the step if it is not the forward part."""
        part = {Role.BACKWARD: " in the gradient of this line", Role.UPDATE: " in the update"}.get(self.op.role, "")
        return f"{self.op.type}{part} made {self.number}"


def find_origin(
    program: Program, feed: Mapping[str, object], scope: Scope, places: Sequence[Place], wanted: Sequence[Var], *, catalogue: Catalogue
) -> Origin | None:
    """Return the op that first produced a NaN or infinity that reached one of `wanted`, in a training step on `feed`.

    `wanted` are variables of the main block. Only values that contributed count: not a NaN that a branch or `where` discards, nor an
    infinity that the program contains as a constant, such as in masks. Returns None if the value was fed or stored, or if this step
    computes only finite numbers. The step draws the same random numbers as the next step in `scope`, and writes nothing.
    """
    recorder = _Recorder(catalogue)
    executor = Executor(places, catalogue=catalogue, interpret=True)
    executor.interpreter = recorder
    with contextlib.suppress(OarlockError):  # an operator may reject a NaN; everything before is recorded
        executor.run(program, feed, list(wanted), scope=scope, training=True)
    return _Trace(recorder.runs).origin(wanted)


@dataclass(frozen=True)
class _Run:
    """An execution of an op with NaN or infinite outputs.

    The runs of its nested blocks precede it in the list, from index `first` on.
    """

    op: Op
    path: str
    first: int
    reads: dict[Var, Kind]
    writes: dict[Var, Kind]
    given: tuple[str, ...]
    made: tuple[str, ...]
    number: str

    @property
    def wrote(self) -> Kind:
        return reduce(or_, self.writes.values())

    def lacks(self, kind: Kind) -> bool:
        """Return whether no input has this kind of number."""
        return not any(read & kind for read in self.reads.values())


class _Recorder(Interpreter):
    """An interpreter that records ops with NaN or infinite outputs, and commits nothing."""

    def __init__(self, catalogue: Catalogue):
        super().__init__(catalogue)
        self.runs: list[_Run] = []

    def run_ops(self, ops: list[Op], scope: Scope, context: Context, trips: tuple[str, ...] = ("main",)) -> None:
        for op in ops:
            if not op.is_commit:
                first = len(self.runs)
                super().run_ops([op], scope, context, trips)
                self._note(op, scope, first)

    def _note(self, op: Op, scope: Scope, first: int) -> None:
        writes = {var: kind_of(scope[var.name]) for var in op.writes}
        if any(kind is not Kind.FINITE for kind in writes.values()):
            reads = {var: kind_of(scope[var.name]) for var in op.reads}
            given = tuple(_lines(op.inputs, scope))
            number = min(_worst_number(scope[var.name]) for var in op.writes)
            self.runs.append(_Run(op, path_of(scope), first, reads, writes, given, tuple(_lines(op.outputs, scope)), number[1]))


class _Trace:
    """Backward search through the recorded runs of a step."""

    def __init__(self, runs: list[_Run]):
        self.runs = runs

    def origin(self, wanted: Sequence[Var]) -> Origin | None:
        for var in wanted:
            last = self._writer(var, len(self.runs))
            if last is not None:
                kind = Kind.NAN if Kind.NAN in self.runs[last].writes[var] else Kind.INFINITE
                made = self._maker(last, kind)
                if made is not None:
                    return self._described(made, kind)
        return None

    def _described(self, number: int, kind: Kind) -> Origin:
        """Return run `number` as the origin, or the run that produced the infinity from which it made a NaN."""
        made = _origin(self.runs[number])
        if kind is Kind.NAN and not self.runs[number].lacks(Kind.INFINITE):
            earlier = self._of_reads(number, Kind.INFINITE)
            if earlier is not None and earlier != number and not _is_written_so(self.runs[earlier].op):
                return _origin(self.runs[earlier], followed_by=made)
        return made

    def _writer(self, var: Var, before: int, since: int = 0) -> int | None:
        """Return the index of the last run before `before` that wrote a NaN or infinity to `var`."""
        return next((number for number in reversed(range(since, before)) if self.runs[number].writes.get(var)), None)

    def _maker(self, number: int, kind: Kind) -> int | None:
        """Return the run that first produced the numbers in the outputs of run `number`; None if they were fed or stored."""
        run = self.runs[number]
        if run.first < number:
            inside = self._maker_inside(run, number, kind)
            if inside is not None:
                return inside
        return number if run.lacks(kind) else self._of_reads(number, kind)

    def _of_reads(self, number: int, kind: Kind) -> int | None:
        """Return the run that produced the first input of this `kind` of run `number`."""
        for var, read in self.runs[number].reads.items():
            if read & kind:
                writer = self._writer(var, number)
                if writer is not None:
                    return self._maker(writer, kind)
                if (
                    var.op is None and var.block is not var.block.program.main
                ):  # an input of a loop body: from an earlier iteration, or from outside
                    return self._before_block(number, kind)
        return None

    def _before_block(self, number: int, kind: Kind) -> int | None:
        """Return the run that produced the inputs of the block that contains run `number`."""
        around = next((later for later in range(number + 1, len(self.runs)) if self.runs[later].first <= number), None)
        if around is None:
            return None
        earlier = self._first(range(self.runs[around].first, number), kind)
        return earlier if earlier is not None else self._of_reads(around, kind)

    def _maker_inside(self, run: _Run, number: int, kind: Kind) -> int | None:
        """Return the run in the blocks of `run` that produced their results, else the first run there that produced this `kind`."""
        returned: Collection[Var] = {var for block in run.op.blocks for var in block.outputs}
        for inner in range(run.first, number):
            if any(self.runs[inner].writes.get(var, Kind.FINITE) & kind for var in returned):
                return self._maker(inner, kind)
        return self._first(range(run.first, number), kind)

    def _first(self, numbers: range, kind: Kind) -> int | None:
        """Return the first of some runs that produced this `kind` from inputs without it."""
        for number in numbers:
            run = self.runs[number]
            if run.first == number and run.wrote & kind and run.lacks(kind):
                return number
        return None


def _origin(run: _Run, followed_by: Origin | None = None) -> Origin:
    return Origin(run.op, run.path, run.given, run.made, run.number, followed_by)


def _is_written_so(op: Op) -> bool:
    """Return whether the op has an infinity among its attributes."""
    return any(isinstance(value, float) and not math.isfinite(value) for value in op.attributes.values())


def kind_of(held: object) -> Kind:
    """Return the kind of a value. Anything other than floating-point tensors and stacks of them is finite."""
    if isinstance(held, Ragged):
        held = held.values
    found = Kind.FINITE
    for tensor in leaves(held) if isinstance(held, torch.Tensor | list) else ():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and not math.isfinite(float(tensor.sum())):
            found |= Kind.NAN if bool(torch.isnan(tensor).any()) else Kind.FINITE  # the sum of finite numbers may overflow
            found |= Kind.INFINITE if bool(torch.isinf(tensor).any()) else Kind.FINITE
    return found


def _worst_number(held: object) -> tuple[int, str]:
    """Return the rank and name of the worst number of a value: nan, inf, -inf, or finite."""
    tensors = [tensor for tensor in leaves(held) if tensor.is_floating_point()] if isinstance(held, torch.Tensor | list) else []
    for rank, (text, is_so) in enumerate({"nan": torch.isnan, "inf": torch.isposinf, "-inf": torch.isneginf}.items()):
        if any(bool(is_so(tensor).any()) for tensor in tensors):
            return rank, text
    return 3, "a finite number"


def describe_range(held: object) -> str:
    """Describe a tensor: `float32[4, 3], 0 to 2.5`, with non-finite numbers counted: `..., 2 nan of 12`."""
    if not isinstance(held, torch.Tensor):
        return type(held).__name__
    text = f"{str(held.dtype).removeprefix('torch.')}{list(held.shape)}"
    if not held.numel() or held.dtype is torch.bool or held.is_complex():
        return text
    finite = held[torch.isfinite(held)]
    if finite.numel():
        text += f", {finite.min().item():.6g} to {finite.max().item():.6g}"
    counts = {"nan": torch.isnan(held), "inf": torch.isposinf(held), "-inf": torch.isneginf(held)} if held.is_floating_point() else {}
    found = [f"{int(where.sum())} {name}" for name, where in counts.items() if bool(where.any())]
    return text + (f", {' and '.join(found)} of {held.numel()}" if found else "")


def _lines(slots: Mapping[str, tuple[Var, ...]], scope: Scope) -> Iterator[str]:
    width = max(map(len, slots), default=0)
    for slot, vars in slots.items():
        for var in vars:
            yield f'{slot:<{width}} = "{var.name}" {describe_range(scope[var.name])}'

"""The operator that first made what is no finite number, found by a step of the interpreter that writes nothing."""

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
    """The numbers of a value that are not finite."""

    FINITE = 0
    INFINITE = 1
    NAN = 2


@dataclass(frozen=True)
class Origin:
    """The op that first made a number that is not finite, and on what. `path` is the scope in which it ran, such as `main/rnn_0/3`.

    `given` describes its inputs, `made` its outputs, a line each; `number` is nan, inf or -inf. `followed_by` is the op that made a NaN of
    the infinity that this one made.
    """

    op: Op
    path: str
    given: tuple[str, ...]
    made: tuple[str, ...]
    number: str
    followed_by: "Origin | None" = None

    @property
    def text(self) -> str:
        """`log made -inf`, and for which part of a step."""
        part = {Role.BACKWARD: " in the gradient of this line", Role.UPDATE: " in the update"}.get(self.op.role, "")
        return f"{self.op.type}{part} made {self.number}"


def find_origin(
    program: Program, feed: Mapping[str, object], scope: Scope, places: Sequence[Place], wanted: Sequence[Var], *, catalogue: Catalogue
) -> Origin | None:
    """The op that first made what is not finite in one of `wanted`, variables of the main block, in a training step on `feed`.

    Only what has led there counts: a NaN that a branch drops, or `where`, has not; nor has an infinity that the program itself writes, as
    masks do. None where no op has: what is not finite was fed or held, or this step computes finite numbers. The step draws what the
    next step in `scope` would, and writes nothing.
    """
    recorder = _Recorder(catalogue)
    executor = Executor(places, catalogue=catalogue, interpret=True)
    executor.interpreter = recorder
    with contextlib.suppress(OarlockError):  # an operator that refuses a NaN; what went before is recorded
        executor.run(program, feed, list(wanted), scope=scope, training=True)
    return _Trace(recorder.runs).origin(wanted)


@dataclass(frozen=True)
class _Run:
    """One run of an op that gave what is not finite.

    The runs in its blocks are those from number `first`, of the same list, up to its own.
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
        """Whether nothing that it read was so."""
        return not any(read & kind for read in self.reads.values())


class _Recorder(Interpreter):
    """The interpreter, which notes what gave numbers that are not finite, and commits nothing."""

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
    """The way to a value, read backward off the runs of a step that gave what is not finite."""

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
        """The run of this `number` as the origin; or the one that made the infinity of which it made a NaN."""
        made = _origin(self.runs[number])
        if kind is Kind.NAN and not self.runs[number].lacks(Kind.INFINITE):
            earlier = self._of_reads(number, Kind.INFINITE)
            if earlier is not None and earlier != number and not _is_written_so(self.runs[earlier].op):
                return _origin(self.runs[earlier], followed_by=made)
        return made

    def _writer(self, var: Var, before: int, since: int = 0) -> int | None:
        """The number of the last run before another that gave `var` what is not finite."""
        return next((number for number in reversed(range(since, before)) if self.runs[number].writes.get(var)), None)

    def _maker(self, number: int, kind: Kind) -> int | None:
        """The run that first made what came to be in what run `number` gave; None where it was fed or held."""
        run = self.runs[number]
        if run.first < number:
            inside = self._maker_inside(run, number, kind)
            if inside is not None:
                return inside
        return number if run.lacks(kind) else self._of_reads(number, kind)

    def _of_reads(self, number: int, kind: Kind) -> int | None:
        """The run that made the first `kind` that run `number` read."""
        for var, read in self.runs[number].reads.items():
            if read & kind:
                writer = self._writer(var, number)
                if writer is not None:
                    return self._maker(writer, kind)
                if (
                    var.op is None and var.block is not var.block.program.main
                ):  # what a loop gave the block: of a trip before, or from outside
                    return self._before_block(number, kind)
        return None

    def _before_block(self, number: int, kind: Kind) -> int | None:
        """The run that made what the block around run `number` was given."""
        around = next((later for later in range(number + 1, len(self.runs)) if self.runs[later].first <= number), None)
        if around is None:
            return None
        earlier = self._first(range(self.runs[around].first, number), kind)
        return earlier if earlier is not None else self._of_reads(around, kind)

    def _maker_inside(self, run: _Run, number: int, kind: Kind) -> int | None:
        """The run in the blocks of `run` that made what they returned; else the first there that made such a thing."""
        returned: Collection[Var] = {var for block in run.op.blocks for var in block.outputs}
        for inner in range(run.first, number):
            if any(self.runs[inner].writes.get(var, Kind.FINITE) & kind for var in returned):
                return self._maker(inner, kind)
        return self._first(range(run.first, number), kind)

    def _first(self, numbers: range, kind: Kind) -> int | None:
        """The first run of some that made a `kind` of what is less."""
        for number in numbers:
            run = self.runs[number]
            if run.first == number and run.wrote & kind and run.lacks(kind):
                return number
        return None


def _origin(run: _Run, followed_by: Origin | None = None) -> Origin:
    return Origin(run.op, run.path, run.given, run.made, run.number, followed_by)


def _is_written_so(op: Op) -> bool:
    """Whether an op writes an infinity because the program says so: one among its attributes."""
    return any(isinstance(value, float) and not math.isfinite(value) for value in op.attributes.values())


def kind_of(held: object) -> Kind:
    """The kind of what a variable holds. Other things than floating-point tensors, and stacks of them, are finite."""
    if isinstance(held, Ragged):
        held = held.values
    found = Kind.FINITE
    for tensor in leaves(held) if isinstance(held, torch.Tensor | list) else ():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and not math.isfinite(float(tensor.sum())):
            found |= Kind.NAN if bool(torch.isnan(tensor).any()) else Kind.FINITE  # a sum may be infinite of finite numbers
            found |= Kind.INFINITE if bool(torch.isinf(tensor).any()) else Kind.FINITE
    return found


def _worst_number(held: object) -> tuple[int, str]:
    """The rank and the text of the worst number of a value: nan, inf, -inf, or one that is finite."""
    tensors = [tensor for tensor in leaves(held) if tensor.is_floating_point()] if isinstance(held, torch.Tensor | list) else []
    for rank, (text, is_so) in enumerate({"nan": torch.isnan, "inf": torch.isposinf, "-inf": torch.isneginf}.items()):
        if any(bool(is_so(tensor).any()) for tensor in tensors):
            return rank, text
    return 3, "a finite number"


def describe_range(held: object) -> str:
    """`float32[4, 3], 0 to 2.5`; with what is not finite counted: `..., 2 of 12 are nan`."""
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

"""Stacked outputs of loops: one buffer that each iteration writes a slice of, or else a list that is stacked after the loop."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Carried, Layout
from oarlock.runtime.plan import loop_support

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter
    from oarlock.runtime.plan.straight_line import StraightLine

__all__ = ["GrowingStacks", "Packed", "RaggedStacks", "SegmentStacks", "Stacks", "Steps"]

_Columns = tuple[int, int]


class Packed(NamedTuple):
    """The outputs of a ragged loop: the name of its steps, of the rows that `splits` cut.

    They are `apart` where each has memory of its own. In a buffer that stays, all are one.
    """

    steps: str
    splits: Var
    apart: bool


class Steps(NamedTuple):
    """The steps of what lies in a buffer: all of them, or those of a slice."""

    buffer: str
    slice: str = ""

    @property
    def whole(self) -> str:
        """The text of the value itself."""
        return f"{self.buffer}.whole{self.slice}"

    def text(self, columns: _Columns | None = None, order: str = "") -> str:
        """The text of the steps, or of some columns of them."""
        steps = f"columns({columns[0]}, {columns[1]})" if columns else "steps"
        return f"{self.buffer}.{steps}{self.slice}{order}"


class Stacks:
    """The stacks that a `for` fills: buffers that each trip computes a part of, stacks of sequences that they take over, or lists.

    A memory that is stacked has its first value in front of the others, in one buffer with what follows it. A list is copied to a buffer
    after the loop, where that is held for the next run.
    """

    def __init__(self, emitter: "Emitter", line: "StraightLine", layout: Layout, count: str, *, reverse: bool = False):
        self.destinations: list[str] = []
        self._parts: list[str] = []  # what each destination is taken from, in the order of the trips
        self._columns: dict[str, str] = {}  # what a trip need not cut -> the columns of a whole, in the order of the trips
        self.names: list[str] = []
        self._emitter, self._line, self._layout = emitter, line, layout
        self._reverse, self._count = reverse, count
        self._lists: list[tuple[str, Var]] = []
        self._closing: list[Callable[[], None]] = []
        self._wholes: dict[Var, Callable[[_Columns], str]] = {}  # what lies in a part of a whole -> the text of columns of all parts

    def open(self) -> None:
        """Before the loop."""
        self._find_sequences()
        memories: dict[Var, Steps] = {}
        wanted = {inner for inner, _ in self._layout.stacked}
        for each in self._layout.carried:
            if each.inside in wanted and each.inside not in memories:
                buffer = self._open_memory(each)
                if buffer is not None:
                    before, after = ("[1:]", "[:-1]") if self._reverse else ("[:-1]", "[1:]")
                    memories[each.inside] = Steps(buffer, before)
                    memories.setdefault(each.following, Steps(buffer, after))
        for inner, outer in self._layout.stacked:
            if inner in memories:
                self._return(outer, memories[inner])
            elif (origin := self._origin(inner)) is not None and (outer.dtype, outer.shape) == (origin.dtype, origin.shape):
                self._hand_over(outer, origin)
            elif not self._open(inner, outer):
                self._open_list(inner, outer)
        self._cut_wholes()

    @property
    def given(self) -> dict[str, str]:
        """The destinations that each iteration is given for its results, and what they are taken from, in the order of the iterations."""
        return dict(zip(self.destinations, self._parts, strict=True)) | self._columns

    def append(self) -> None:
        """At the end of a trip."""
        for stack, var in self._lists:
            self._emitter.source.write(f"{stack}.append({self._emitter.source.name(var)})")

    def close(self) -> None:
        """After the loop."""
        for write in self._closing:
            write()

    def _return(self, outer: Var, steps: Steps) -> None:
        source, line = self._emitter.source, self._emitter.lines[-1]
        self._closing.append(lambda: source.write(f"{source.name(outer)} = {steps.whole}"))
        line.hold(steps, outer)

    def _hand_over(self, outer: Var, sequence: Var) -> None:
        """Let `outer` be the sequence that the trips have written over."""
        source, line = self._emitter.source, self._emitter.lines[-1]
        self._closing.append(lambda: source.write(f"{source.name(outer)} = {source.name(sequence)}"))
        steps = line.steps_of(sequence)
        if steps is not None:
            line.steps[outer] = steps

    def _origin(self, inner: Var) -> Var | None:
        """The sequence whose steps `inner` is written over."""
        origin = self._line.buffers.origin(inner)
        return None if origin is None else dict(self._layout.steps)[origin]

    def _outer(self, *inside: Var) -> list[Var]:
        """The outputs of the loop that are the stacks of these."""
        return [outer for inner, outer in self._layout.stacked if is_among(inner, inside)]

    def _open_memory(self, each: Carried) -> str | None:
        """A buffer for the first value of a memory and all that follow; its name. None where sizes may differ."""
        source, following, first = self._emitter.source, each.following, self._emitter.source.name(each.initial)
        sequence = self._origin(following)
        if sequence is not None and sequence in self._emitter.lines[-1].headroom:
            buffer = self._emitter.lines[-1].headroom.pop(sequence)
            source.write(f"{buffer}.steps[{self._first}].copy_({first})")
            self._leave(buffer)
            self._line.buffers.stay(following)
            return buffer
        held = self._emitter.holds(self._outer(each.inside, following))
        text = self._buffer(following, held=held, first=True)
        if text is None or not self._line.buffers.is_even(following):
            return None
        buffer = source.fresh(f"{following.name}_buffer")
        if self._put(following, buffer, first=True):
            self._write_buffer(buffer, text, first)
        else:
            text = self._emitter.buffer(following, f"{self._count} + 1", held=held) or text
            self._stack_later(buffer, text, self._new_list(following, first))
        self._leave(buffer, held=held)
        return buffer

    def _open(self, inner: Var, outer: Var) -> bool:
        """Return a buffer for what every trip computes of `inner`, and say whether that can be computed there."""
        held = self._emitter.holds(self._outer(inner))
        copied = not held and self._may_copy(outer)
        text = self._buffer(inner, held=held, copied=copied) if self._line.buffers.is_new(inner) else None
        source = self._emitter.source
        buffer = source.fresh(f"{inner.name}_buffer")
        if text is None or not self._put(inner, buffer):
            return False
        self._write_buffer(buffer, text)
        self._leave(buffer, held=held)
        if copied:
            self._closing.append(lambda: source.write(f"{source.name(outer)} = workspace.export({buffer})"))
        else:
            self._return(outer, Steps(buffer))
        return True

    def _may_copy(self, outer: Var) -> bool:
        """Whether the stack `outer` may be a copy of the buffer that is filled."""
        finals = (each.final for each in self._layout.carried)
        results = [*finals, *(other for _, other in (*self._layout.stacked, *self._layout.summed))]
        return self._emitter.may_copy(outer, (other for other in results if other is not outer))

    def _leave(self, buffer: str, *, held: bool = False) -> None:
        """After the loop, `buffer` is let go of; or it is given back some time, where it is `held`."""
        line = self._emitter.lines[-1]
        if held:
            line.held[buffer] = []
        elif buffer not in line.held:
            self.names.append(buffer)

    @property
    def _first(self) -> int:
        """Where the first value of a memory lies."""
        return -1 if self._reverse else 0

    def _buffer(self, var: Var, *, held: bool, copied: bool = False, first: bool = False) -> str | None:
        """The text of a buffer for what every trip computes of `var`, and for the `first` value; None where a size is unknown."""
        return self._emitter.buffer(var, f"{self._count} + 1" if first else self._count, held=held, copied=copied)

    def _write_buffer(self, buffer: str, text: str, first: str | None = None) -> None:
        self._emitter.source.write(f"{buffer} = {text}")
        if first is not None:
            self._emitter.source.write(f"{buffer}.steps[{self._first}].copy_({first})")

    def _open_list(self, inner: Var, outer: Var) -> None:
        source = self._emitter.source
        stack = self._new_list(inner)
        held = self._line.buffers.is_even(inner) and self._emitter.holds([outer])
        text = self._emitter.buffer(inner, self._count, held=True) if held else None
        if text is not None:
            buffer = source.fresh(f"{inner.name}_buffer")
            self._stack_later(buffer, text, stack)
            self._leave(buffer, held=True)
            self._return(outer, Steps(buffer))
            return
        stacked = f"{source.bind('stack', loop_support.stack)}({self._ordered(stack)})"
        values = f"{stacked} if {self._count} else {self._emitter.zeros(inner, (0,))}"
        self._closing.append(lambda: source.write(f"{source.name(outer)} = {values}"))

    def _new_list(self, var: Var, first: str = "") -> str:
        stack = self._emitter.source.fresh(f"{var.name}_stack")
        self.names.append(stack)
        self._lists.append((stack, var))
        self._emitter.source.write(f"{stack} = [{first}]")
        return stack

    def _stack_later(self, buffer: str, text: str, stack: str) -> None:
        """After the loop, make a buffer and copy a list to it."""
        source = self._emitter.source
        self._closing.append(lambda: source.write(f"{buffer} = {text}"))
        self._closing.append(lambda: source.write(f"{buffer}.stack({self._ordered(stack)})"))

    def _ordered(self, stack: str) -> str:
        """A list, which is in the order of the trips, in the order of the steps."""
        return f"{stack}[::-1]" if self._reverse else stack

    def _cut_wholes(self) -> None:
        """Cut before the loop what its trips cut: a `split` of what lies in parts of a whole gives parts of columns of the whole.

        One call makes the views for all trips, where each trip made some.
        """
        buffers = self._line.buffers
        for op in self._layout.body.ops:
            parts = buffers.columns_of(op)
            whole = self._wholes.get(buffers.root(op.reads[0])) if parts else None
            if whole is not None:
                self._line.cut.add(op)
                for part, (start, stop) in zip(parts, _ranges(parts), strict=True):
                    self._columns[self._emitter.source.name(part)] = whole((start, stop))

    def _find_sequences(self) -> None:
        """Note what is in the steps of sequences: a value that is written over a step lies there."""
        outer_line, order = self._emitter.lines[-1], "[::-1]" if self._reverse else ""
        for inner, outer in self._layout.steps:
            if outer_line.buffers.is_even(outer):
                name, steps = self._emitter.source.name(outer), outer_line.steps_of(outer)
                if steps is not None:
                    self._wholes[inner] = partial(steps.text, order=order)
                else:
                    self._wholes[inner] = lambda columns, name=name: f"{name}[..., {columns[0]}:{columns[1]}].unbind(0){order}"

    def _put(self, var: Var, buffer: str, *, first: bool = False) -> bool:
        """Let `var` be computed in `buffer`, where something may be `first`; False where it cannot be, and nothing is changed."""
        source, buffers = self._emitter.source, self._line.buffers
        destination, parts = source.fresh(f"{var.name}_destination"), buffers.parts_of(var)
        columns = [source.fresh(f"{part.name}_destination") for part in parts]
        if not parts or not buffers.gather(var, columns, destination):
            if not buffers.put(var, destination):
                return False
            parts = []
            self._wholes[buffers.root(var)] = lambda columns: self._part(buffer, var, columns, first=first)
        self.destinations.append(destination)
        self._parts.append(self._part(buffer, var, first=first))
        if parts:
            self._parts += [self._part(buffer, var, part, first=first) for part in _ranges(parts)]
            self.destinations += columns
        return True

    def _part(self, buffer: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        """The destinations in `buffer`, in the order of the trips."""
        order = f"[{'-2::-1' if self._reverse else '1:'}]" if first else "[::-1]" if self._reverse else ""
        return Steps(buffer).text(columns, order)


class RaggedStacks(Stacks):
    """The outputs of a `for` over ragged sequences: steps, computed in a packed buffer where they can be."""

    def __init__(self, emitter: "Emitter", line: "StraightLine", layout: Layout, rows: str, count: str, splits: Var, *, reverse: bool):
        super().__init__(emitter, line, layout, count, reverse=reverse)
        self._rows, self._splits = rows, splits
        self._steps: dict[Var, str] = {}
        self._buffers: dict[Var, str] = {}
        self._apart = {inner for inner, _ in layout.stacked if line.buffers.is_new(inner)}

    def open(self) -> None:
        source = self._emitter.source
        for inner in dict.fromkeys(inner for inner, _ in self._layout.stacked):
            by_row = loop_support.is_by_row(inner, self._layout.body)
            text = (
                self._emitter.buffer(inner, f"{self._rows}.total" if by_row else self._count, int(by_row)) if inner in self._apart else None
            )
            buffer, self._steps[inner] = source.fresh(f"{inner.name}_buffer"), source.fresh(f"{inner.name}_steps")
            if text is None or not self._put(inner, buffer):
                self._steps[inner] = self._new_list(inner)
                continue
            self._buffers[inner] = buffer
            source.write(f"{buffer} = {text}.whole")
            source.write(f"{self._steps[inner]} = {buffer}{self._cut(inner)}")
        self._cut_wholes()

    def _cut(self, var: Var) -> str:
        return f".split({self._rows}.counts)" if loop_support.is_by_row(var, self._layout.body) else ".unbind(0)"

    def _part(self, buffer: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        steps = f"{buffer}[..., {columns[0]}:{columns[1]}]{self._cut(var)}" if columns else self._steps[var]
        return f"{steps}[::-1]" if self._reverse else steps

    def close(self) -> None:
        """After the loop: what others need than loops over the same rows is joined."""
        source, line, body = self._emitter.source, self._emitter.lines[-1], self._layout.body
        for steps, _ in self._lists if self._reverse else ():
            source.write(f"{steps}.reverse()")
        for inner, outer in self._layout.stacked:
            steps, buffer = self._steps[inner], self._buffers.get(inner)
            if loop_support.is_by_row(inner, body):
                line.packed[outer] = Packed(source.fresh(f"{outer.name}_steps"), self._splits, apart=inner in self._apart)
                source.write(f"{line.packed[outer].steps} = {steps}")
                if line.is_stepped_through(outer, self._splits):
                    line.unjoined.add(outer)
                    continue
                joined = f"{self._rows}.unpack({buffer})" if buffer else f"{self._rows}.join({steps})"
                empty = self._emitter.zeros(inner)
            else:
                joined = buffer or f"{source.bind('stack', loop_support.stack)}({steps})"
                empty = self._emitter.zeros(inner, (0,))
            source.write(f"{source.name(outer)} = " + (joined if buffer else f"{joined} if {self._count} else {empty}"))
        self.names += [*self._steps.values(), *self._buffers.values()]


class SegmentStacks(Stacks):
    """The stacks of a `for` over segments of sequences: what trips return, one after another."""

    def open(self) -> None:
        """Before the loop: a list for each stack, which is joined after it."""
        source = self._emitter.source
        for inner, outer in self._layout.stacked:
            joined = f"{source.bind('joined', torch.cat)}({self._ordered(self._new_list(inner))})"
            text = f"{source.name(outer)} = {joined} if {self._count} else {self._emitter.zeros(inner)}"
            self._closing.append(partial(source.write, text))


class GrowingStacks(Stacks):
    """The stacks that a `while` fills: nobody knows before how many trips it makes, so the buffers grow."""

    def _may_copy(self, outer: Var) -> bool:
        """The views of what has grown are there, many or few."""
        return False

    def _buffer(self, var: Var, *, held: bool, copied: bool = False, first: bool = False) -> str | None:
        return self._emitter.growing_buffer(var, held=held)

    def _write_buffer(self, buffer: str, text: str, first: str | None = None) -> None:
        source = self._emitter.source
        super()._write_buffer(buffer, text)
        if first is not None:
            source.write(f"{buffer}.next_destination().copy_({first})")
        self._closing.append(lambda: source.write(f"{buffer}.filled()"))

    def _part(self, buffer: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        return f"{self.destinations[-1]}[..., {columns[0]}:{columns[1]}]" if columns else f"{buffer}.next_destination()"

    def _cut_wholes(self) -> None:
        """Nothing is cut before the loop: a buffer that grows moves."""


def _ranges(parts: Sequence[Var]) -> Iterator[tuple[int, int]]:
    """Where each of `parts`, which stand one after another along their last axis, begins and ends."""
    start = 0
    for part in parts:
        stop: int = start + part.shape[-1]  # type: ignore[index, operator]
        yield start, stop
        start = stop

"""Where what the trips of a loop hand out is computed: each in its part of memory for all trips or, where that cannot be, anywhere."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from oarlock.ir.variable import Var
from oarlock.op.control.layout import Carried, Layout
from oarlock.runtime.plan import trips

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter
    from oarlock.runtime.plan.line import Line

__all__ = ["GrowingStacks", "Packed", "RaggedStacks", "Stacks", "Steps"]

_Columns = tuple[int, int]


class Packed(NamedTuple):
    """The outputs of a ragged loop: the name of its steps, of the rows that `splits` cut.

    They are `apart` where each has memory of its own. In a buffer that stays, all are one.
    """

    steps: str
    splits: Var
    apart: bool


class Steps(NamedTuple):
    """The steps of what lies in a space: all of them, or those of a slice."""

    space: str
    slice: str = ""

    @property
    def whole(self) -> str:
        """The text of the value itself."""
        return f"{self.space}.whole{self.slice}"

    def text(self, columns: _Columns | None = None, order: str = "") -> str:
        """The text of the steps, or of some columns of them."""
        steps = f"columns({columns[0]}, {columns[1]})" if columns else "steps"
        return f"{self.space}.{steps}{self.slice}{order}"


class Stacks:
    """The stacks that a `for` fills: spaces that each trip computes a part of, stacks of sequences that they take over, or lists.

    A memory that is stacked has its first value in front of the others, in one space with what follows it. A list is copied to a space
    after the loop, where that is held for the next run.
    """

    def __init__(self, emitter: "Emitter", line: "Line", layout: Layout, count: str, *, reverse: bool = False):
        self.places: list[str] = []
        self._parts: list[str] = []  # what each place is taken from, in the order of the trips
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
                space = self._open_memory(each)
                if space is not None:
                    before, after = ("[1:]", "[:-1]") if self._reverse else ("[:-1]", "[1:]")
                    memories[each.inside] = Steps(space, before)
                    memories.setdefault(each.following, Steps(space, after))
        for inner, outer in self._layout.stacked:
            if inner in memories:
                self._hand_out(outer, memories[inner])
            elif (origin := self._origin(inner)) is not None and (outer.dtype, outer.shape) == (origin.dtype, origin.shape):
                self._hand_over(outer, origin)
            elif not self._open(inner, outer):
                self._open_list(inner, outer)
        self._cut_wholes()

    @property
    def given(self) -> dict[str, str]:
        """The destinations that each iteration is given for its results, and what they are taken from, in the order of the iterations."""
        return dict(zip(self.places, self._parts, strict=True)) | self._columns

    def append(self) -> None:
        """At the end of a trip."""
        for stack, var in self._lists:
            self._emitter.source.write(f"{stack}.append({self._emitter.source.name(var)})")

    def close(self) -> None:
        """After the loop."""
        for write in self._closing:
            write()

    def _hand_out(self, outer: Var, steps: Steps) -> None:
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
        origin = self._line.placement.origin(inner)
        return None if origin is None else dict(self._layout.steps)[origin]

    def _outer(self, *inside: Var) -> list[Var]:
        """The outputs of the loop that are the stacks of these."""
        return [outer for inner, outer in self._layout.stacked if inner in inside]

    def _open_memory(self, each: Carried) -> str | None:
        """A space for the first value of a memory and all that follow; its name. None where sizes may differ."""
        source, following, first = self._emitter.source, each.following, self._emitter.source.name(each.initial)
        sequence = self._origin(following)
        if sequence is not None and sequence in self._emitter.lines[-1].rooms:
            space = self._emitter.lines[-1].rooms.pop(sequence)
            source.write(f"{space}.steps[{self._first}].copy_({first})")
            self._leave(space)
            self._line.placement.stay(following)
            return space
        held = self._emitter.holds(self._outer(each.inside, following))
        text = self._space(following, held=held, first=True)
        if text is None or not self._line.placement.is_even(following):
            return None
        space = source.fresh(f"{following.name}_space")
        if self._put(following, space, first=True):
            self._write_space(space, text, first)
        else:
            text = self._emitter.space(following, f"{self._count} + 1", held=held) or text
            self._stack_later(space, text, self._new_list(following, first))
        self._leave(space, held=held)
        return space

    def _open(self, inner: Var, outer: Var) -> bool:
        """Hand out a space for what every trip computes of `inner`, and say whether that can be computed there."""
        held = self._emitter.holds(self._outer(inner))
        copied = not held and self._may_copy(outer)
        text = self._space(inner, held=held, copied=copied) if self._line.placement.is_new(inner) else None
        source = self._emitter.source
        space = source.fresh(f"{inner.name}_space")
        if text is None or not self._put(inner, space):
            return False
        self._write_space(space, text)
        self._leave(space, held=held)
        if copied:
            self._closing.append(lambda: source.write(f"{source.name(outer)} = workspace.hand_out({space})"))
        else:
            self._hand_out(outer, Steps(space))
        return True

    def _may_copy(self, outer: Var) -> bool:
        """Whether the stack `outer` may be a copy of the space that is filled."""
        finals = (each.final for each in self._layout.carried)
        results = [*finals, *(other for _, other in (*self._layout.stacked, *self._layout.summed))]
        return self._emitter.may_copy(outer, (other for other in results if other is not outer))

    def _leave(self, space: str, *, held: bool = False) -> None:
        """After the loop, `space` is let go of; or it is given back some time, where it is `held`."""
        line = self._emitter.lines[-1]
        if held:
            line.held[space] = []
        elif space not in line.held:
            self.names.append(space)

    @property
    def _first(self) -> int:
        """Where the first value of a memory lies."""
        return -1 if self._reverse else 0

    def _space(self, var: Var, *, held: bool, copied: bool = False, first: bool = False) -> str | None:
        """The text of a space for what every trip computes of `var`, and for the `first` value; None where a size is unknown."""
        return self._emitter.space(var, f"{self._count} + 1" if first else self._count, held=held, copied=copied)

    def _write_space(self, space: str, text: str, first: str | None = None) -> None:
        self._emitter.source.write(f"{space} = {text}")
        if first is not None:
            self._emitter.source.write(f"{space}.steps[{self._first}].copy_({first})")

    def _open_list(self, inner: Var, outer: Var) -> None:
        source = self._emitter.source
        stack = self._new_list(inner)
        held = self._line.placement.is_even(inner) and self._emitter.holds([outer])
        text = self._emitter.space(inner, self._count, held=True) if held else None
        if text is not None:
            space = source.fresh(f"{inner.name}_space")
            self._stack_later(space, text, stack)
            self._leave(space, held=True)
            self._hand_out(outer, Steps(space))
            return
        values = f"{source.bind('stack', trips.stack)}({self._ordered(stack)}) if {self._count} else {self._emitter.zeros(inner, (0,))}"
        self._closing.append(lambda: source.write(f"{source.name(outer)} = {values}"))

    def _new_list(self, var: Var, first: str = "") -> str:
        stack = self._emitter.source.fresh(f"{var.name}_stack")
        self.names.append(stack)
        self._lists.append((stack, var))
        self._emitter.source.write(f"{stack} = [{first}]")
        return stack

    def _stack_later(self, space: str, text: str, stack: str) -> None:
        """After the loop, make a space and copy a list to it."""
        source = self._emitter.source
        self._closing.append(lambda: source.write(f"{space} = {text}"))
        self._closing.append(lambda: source.write(f"{space}.stack({self._ordered(stack)})"))

    def _ordered(self, stack: str) -> str:
        """A list, which is in the order of the trips, in the order of the steps."""
        return f"{stack}[::-1]" if self._reverse else stack

    def _cut_wholes(self) -> None:
        """Cut before the loop what its trips cut: a `split` of what lies in parts of a whole gives parts of columns of the whole.

        One call makes the views for all trips, where each trip made some.
        """
        placement = self._line.placement
        for op in self._layout.body.ops:
            parts = placement.columns_of(op)
            whole = self._wholes.get(placement.root(op.reads[0])) if parts else None
            if whole is not None:
                self._line.cut.add(op)
                for part, (start, stop) in zip(parts, _ranges(parts), strict=True):
                    self._columns[self._emitter.source.name(part)] = whole((start, stop))

    def _find_sequences(self) -> None:
        """Note what is in the steps of sequences: a value that is written over a step lies there."""
        outer_line, order = self._emitter.lines[-1], "[::-1]" if self._reverse else ""
        for inner, outer in self._layout.steps:
            if outer_line.placement.is_even(outer):
                name, steps = self._emitter.source.name(outer), outer_line.steps_of(outer)
                if steps is not None:
                    self._wholes[inner] = partial(steps.text, order=order)
                else:
                    self._wholes[inner] = lambda columns, name=name: f"{name}[..., {columns[0]}:{columns[1]}].unbind(0){order}"

    def _put(self, var: Var, space: str, *, first: bool = False) -> bool:
        """Let `var` be computed in `space`, where something may be `first`; False where it cannot be, and nothing is changed."""
        source, placement = self._emitter.source, self._line.placement
        place, parts = source.fresh(f"{var.name}_place"), placement.parts_of(var)
        columns = [source.fresh(f"{part.name}_place") for part in parts]
        if not parts or not placement.gather(var, columns, place):
            if not placement.put(var, place):
                return False
            parts = []
            self._wholes[placement.root(var)] = lambda columns: self._part(space, var, columns, first=first)
        self.places.append(place)
        self._parts.append(self._part(space, var, first=first))
        if parts:
            self._parts += [self._part(space, var, part, first=first) for part in _ranges(parts)]
            self.places += columns
        return True

    def _part(self, space: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        """The places in `space`, in the order of the trips."""
        order = f"[{'-2::-1' if self._reverse else '1:'}]" if first else "[::-1]" if self._reverse else ""
        return Steps(space).text(columns, order)


class RaggedStacks(Stacks):
    """The outputs of a `for` over ragged sequences: steps, computed in a packed buffer where they can be."""

    def __init__(self, emitter: "Emitter", line: "Line", layout: Layout, rows: str, count: str, splits: Var, *, reverse: bool):
        super().__init__(emitter, line, layout, count, reverse=reverse)
        self._rows, self._splits = rows, splits
        self._steps: dict[Var, str] = {}
        self._spaces: dict[Var, str] = {}
        self._apart = {inner for inner, _ in layout.stacked if line.placement.is_new(inner)}

    def open(self) -> None:
        source = self._emitter.source
        for inner in dict.fromkeys(inner for inner, _ in self._layout.stacked):
            by_row = trips.is_by_row(inner, self._layout.body)
            text = (
                self._emitter.space(inner, f"{self._rows}.total" if by_row else self._count, int(by_row)) if inner in self._apart else None
            )
            space, self._steps[inner] = source.fresh(f"{inner.name}_space"), source.fresh(f"{inner.name}_steps")
            if text is None or not self._put(inner, space):
                self._steps[inner] = self._new_list(inner)
                continue
            self._spaces[inner] = space
            source.write(f"{space} = {text}.whole")
            source.write(f"{self._steps[inner]} = {space}{self._cut(inner)}")
        self._cut_wholes()

    def _cut(self, var: Var) -> str:
        return f".split({self._rows}.counts)" if trips.is_by_row(var, self._layout.body) else ".unbind(0)"

    def _part(self, space: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        steps = f"{space}[..., {columns[0]}:{columns[1]}]{self._cut(var)}" if columns else self._steps[var]
        return f"{steps}[::-1]" if self._reverse else steps

    def close(self) -> None:
        """After the loop: what others need than loops over the same rows is joined."""
        source, line, body = self._emitter.source, self._emitter.lines[-1], self._layout.body
        for steps, _ in self._lists if self._reverse else ():
            source.write(f"{steps}.reverse()")
        for inner, outer in self._layout.stacked:
            steps, space = self._steps[inner], self._spaces.get(inner)
            if trips.is_by_row(inner, body):
                line.packed[outer] = Packed(source.fresh(f"{outer.name}_steps"), self._splits, apart=inner in self._apart)
                source.write(f"{line.packed[outer].steps} = {steps}")
                if line.is_stepped_through(outer, self._splits):
                    line.unjoined.add(outer)
                    continue
                joined = f"{self._rows}.unpack({space})" if space else f"{self._rows}.join({steps})"
                empty = self._emitter.zeros(inner)
            else:
                joined = space or f"{source.bind('stack', trips.stack)}({steps})"
                empty = self._emitter.zeros(inner, (0,))
            source.write(f"{source.name(outer)} = " + (joined if space else f"{joined} if {self._count} else {empty}"))
        self.names += [*self._steps.values(), *self._spaces.values()]


class GrowingStacks(Stacks):
    """The stacks that a `while` fills: nobody knows before how many trips it makes, so the spaces grow."""

    def _may_copy(self, outer: Var) -> bool:
        """The views of what has grown are there, many or few."""
        return False

    def _space(self, var: Var, *, held: bool, copied: bool = False, first: bool = False) -> str | None:
        return self._emitter.growing_space(var, held=held)

    def _write_space(self, space: str, text: str, first: str | None = None) -> None:
        source = self._emitter.source
        super()._write_space(space, text)
        if first is not None:
            source.write(f"{space}.place().copy_({first})")
        self._closing.append(lambda: source.write(f"{space}.filled()"))

    def _part(self, space: str, var: Var, columns: _Columns | None = None, *, first: bool) -> str:
        return f"{self.places[-1]}[..., {columns[0]}:{columns[1]}]" if columns else f"{space}.place()"

    def _cut_wholes(self) -> None:
        """Nothing is cut before the loop: a space that grows moves."""


def _ranges(parts: Sequence[Var]) -> Iterator[tuple[int, int]]:
    """Where each of `parts`, which stand one after another along their last axis, begins and ends."""
    start = 0
    for part in parts:
        stop: int = start + part.shape[-1]  # type: ignore[index, operator]
        yield start, stop
        start = stop

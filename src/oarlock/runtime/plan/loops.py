"""What ops with blocks become: a `for`, a `while`, an `if`, around the lines of their blocks."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.variable import Var
from oarlock.op.control.layout import Layout
from oarlock.runtime.plan import trips

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter, Line

__all__ = ["WRITERS"]


def _recurrent(emitter: "Emitter", op: Op) -> None:
    """A `for` over the steps. What it stacks is computed in the stack where it can be, or in the memory of a sequence that ends here."""
    source = emitter.source
    write, name = source.write, source.name
    layout, reverse = Layout.of(op), bool(op.attributes["reverse"])
    body = layout.body
    outer_line = emitter.lines[-1]
    line = emitter.line(body, body.outputs, given=[inner for inner, outer in layout.steps if outer_line.may_write_over(outer)])
    steps = [source.fresh(f"{inner.name}_steps") for inner, _ in layout.steps]
    count, trip = source.fresh("count"), source.fresh("trip")
    write(f"{_listed(steps)} = {source.bind('steps', trips.steps_of)}({', '.join(name(outer) for _, outer in layout.steps)})", op)
    write(f"{count} = len({steps[0]})")
    stacks = _Stacks(emitter, line, layout, count, reverse=reverse)
    memories = [name(each.inside) for each in layout.carried]
    _assign(emitter, memories, (name(each.initial) for each in layout.carried))
    totals = [source.fresh(f"{inner.name}_total") for inner, _ in layout.summed]
    _assign(emitter, totals, ("None" for _ in totals))
    variables = [trip, *(name(inner) for inner, _ in layout.steps), *stacks.places]
    numbers = f"range({count} - 1, -1, -1)" if reverse else f"range({count})"
    parts = [numbers, *(f"reversed({step})" if reverse else step for step in steps), *stacks.parts]
    write(f"for {', '.join(variables)} in zip({', '.join(parts)}):")
    with source.indented(), emitter.body(body, trip):
        _write_body(emitter, line, body)
        stacks.append()
        for total, (var, _) in zip(totals, layout.summed, strict=True):
            more = f"{total}.add_({name(var)})" if _only_summed(line, layout, var) else f"{total} + {name(var)}"
            write(f"{total} = {name(var)} if {total} is None else {more}")
        _assign(emitter, memories, (name(each.following) for each in layout.carried))
        _forget_trip(emitter, body, set(memories), stacks.places)
    stacks.close()
    if totals:
        write(f"if not {count}:")
        with source.indented():
            _assign(emitter, totals, (emitter.zeros(var) for var, _ in layout.summed))
    _assign(emitter, [name(each.final) for each in layout.carried], memories)
    _assign(emitter, [name(outer) for _, outer in layout.summed], totals)
    emitter.forget([*steps, *stacks.names, *totals, *memories])


def _only_summed(line: "Line", layout: Layout, var: Var) -> bool:
    """Whether the sum over the trips may be computed in the memory of the first value of `var`."""
    handed_out = sum(other is var for other in layout.body.outputs)
    return handed_out == 1 and line.placement.is_new(var) and line.placement.is_even(var)


class _Stacks:
    """The stacks that a `for` fills: spaces that each trip computes a part of, stacks of sequences that they take over, or lists."""

    def __init__(self, emitter: "Emitter", line: "Line", layout: Layout, count: str, *, reverse: bool):
        self.places: list[str] = []
        self.parts: list[str] = []  # what each place is taken from, in the order of the trips
        self.names: list[str] = []
        self._emitter, self._reverse, self._count = emitter, reverse, count
        self._copies: list[tuple[str, Var]] = []  # what is not computed in its place
        self._lists: list[tuple[str, Var, Var]] = []
        self._results: list[tuple[Var, str]] = []
        source = emitter.source
        memories = {}
        for each in layout.carried:
            if any(inner is each.inside for inner, _ in layout.stacked) and each.inside not in memories:
                space = self._open(each.following, f"{count} + 1")
                if space is not None:
                    memories[each.inside] = f"{space}[1:]" if reverse else f"{space}[:-1]"
                    memories.setdefault(each.following, f"{space}[:-1]" if reverse else f"{space}[1:]")
                    source.write(f"{space}[{'-1' if reverse else '0'}].copy_({source.name(each.initial)})")
                    self._place(line, each.following, space, f".unbind(0)[{'-2::-1' if reverse else '1:'}]")
        sequences = dict(layout.steps)
        for inner, outer in layout.stacked:
            origin = line.placement.origin(inner)
            if inner in memories:
                self._results.append((outer, memories[inner]))
            elif origin is not None and (outer.dtype, outer.shape) == (sequences[origin].dtype, sequences[origin].shape):
                self._results.append((outer, source.name(sequences[origin])))
            elif line.placement.is_new(inner) and (space := self._open(inner, count)) is not None:
                self._place(line, inner, space, ".unbind(0)" + ("[::-1]" if reverse else ""))
                self._results.append((outer, space))
            else:
                self._lists.append((source.fresh(f"{inner.name}_stack"), inner, outer))
        _assign(emitter, [stack for stack, _, _ in self._lists], ("[]" for _ in self._lists))

    def _open(self, var: Var, count: str) -> str | None:
        text = self._emitter.space(var, count)
        if text is None:
            return None
        self.names.append(self._emitter.source.fresh(f"{var.name}_space"))
        self._emitter.source.write(f"{self.names[-1]} = {text}")
        return self.names[-1]

    def _place(self, line: "Line", var: Var, space: str, cut: str) -> None:
        place = self._emitter.source.fresh(f"{var.name}_place")
        self.places.append(place)
        self.parts.append(f"{space}{cut}")
        if not _gathered(self._emitter, self, line, var, place, space, cut) and not line.placement.put(var, place):
            self._copies.append((place, var))

    def append(self) -> None:
        """At the end of a trip."""
        for place, var in self._copies:
            self._emitter.source.write(f"{place}.copy_({self._emitter.source.name(var)})")
        for stack, var, _ in self._lists:
            self._emitter.source.write(f"{stack}.append({self._emitter.source.name(var)})")

    def close(self) -> None:
        """After the loop."""
        source = self._emitter.source
        for outer, text in self._results:
            source.write(f"{source.name(outer)} = {text}")
        for stack, var, outer in self._lists:
            values = f"{stack}[::-1]" if self._reverse else stack
            empty = self._emitter.zeros(var, (0,))
            source.write(f"{source.name(outer)} = {source.bind('stack', trips.stack)}({values}) if {self._count} else {empty}")
        self.names += [stack for stack, _, _ in self._lists]


def _ragged(emitter: "Emitter", op: Op) -> None:
    """A `for` over the steps of ragged sequences, which are packed: the rows that have a step lie one after another."""
    source = emitter.source
    write, name = source.write, source.name
    layout, reverse = Layout.of(op), bool(op.attributes["reverse"])
    body, outer_line, (splits,) = layout.body, emitter.lines[-1], op.inputs["splits"]
    count, trip = source.fresh("count"), source.fresh("trip")
    if splits not in outer_line.rows:
        outer_line.rows[splits] = source.fresh("rows")
        write(f"{outer_line.rows[splits]} = {source.bind('ragged_rows', trips.RaggedRows)}({name(splits)})", op)
    rows, used = outer_line.rows[splits], _read_inside(body)
    steps, given = [], []
    for inner, outer in layout.steps:
        packed, by_row = outer_line.packed.get(outer), trips.is_by_row(inner, body)
        if outer_line.placement.is_even(outer) and (outer in outer_line.apart and outer_line.may_write_over(outer) if packed else by_row):
            given.append(inner)  # packed now, it is new
        steps.append(source.fresh(f"{inner.name}_steps"))
        if inner in used:
            write(f"{steps[-1]} = " + (packed or f"{rows}.split({name(outer)}, by_row={by_row})"), op)
        elif outer not in outer_line.unjoined:
            write(f"{rows}.check({name(outer)}, by_row={by_row})", op)
    line = emitter.line(body, body.outputs, given=given)
    write(f"{count} = {rows}.steps")
    memories = [name(each.inside) for each in layout.carried]
    by_row = [trips.is_by_row(each.inside, body) for each in layout.carried]
    ends = [source.fresh(f"{each.inside.name}_rows") for each in layout.carried]  # what rows without a step have
    for each, sorted_, memory, end in zip(layout.carried, by_row, memories, ends, strict=True):
        write(f"{end} = {rows}.sort({name(each.initial)})" if sorted_ else f"{end} = {name(each.initial)}")
        if sorted_:
            begun = end if reverse else f"{rows}.sort({name(each.initial)})"  # forward, rows that have ended are written into `end`
            write(f"{memory} = {begun}[:{rows}.counts[{-1 if reverse else 0}] if {count} else 0]")
        else:
            write(f"{memory} = {end}")
    stacks = _RaggedStacks(emitter, line, layout, rows, count, splits, reverse=reverse)
    totals = [source.fresh(f"{inner.name}_total") for inner, _ in layout.summed]
    _assign(emitter, totals, ("None" for _ in totals))
    following = source.fresh("next_count")
    counts = f"[*{rows}.counts[-2::-1], 0]" if reverse else f"[*{rows}.counts[1:], 0]"
    taken = [(name(inner), step) for (inner, _), step in zip(layout.steps, steps, strict=True) if inner in used]
    active, now = source.fresh("count"), f"reversed({rows}.counts)" if reverse else f"{rows}.counts"
    variables = [trip, active, following, *(text for text, _ in taken), *stacks.places]
    numbers = f"range({count} - 1, -1, -1)" if reverse else f"range({count})"
    parts = [numbers, now, counts, *(f"reversed({step})" if reverse else step for _, step in taken), *stacks.parts]
    write(f"for {', '.join(variables)} in zip({', '.join(parts)}):")
    with source.indented(), emitter.body(body, trip):
        emitter.know(body.inputs[0].shape[0], active)  # type: ignore[index, arg-type]
        _write_body(emitter, line, body)
        stacks.append()
        for total, (var, _) in zip(totals, layout.summed, strict=True):
            write(f"{total} = {name(var)} if {total} is None else {total} + {name(var)}")
        _assign(emitter, memories, (name(each.following) for each in layout.carried))
        _forget_trip(emitter, body, {*memories, *(name(inner) for inner, _ in layout.steps if inner not in used)}, stacks.places)
        for memory, sorted_, end in zip(memories, by_row, ends, strict=True):
            if sorted_ and reverse:
                write(f"if {following}:")
                with source.indented():
                    write(f"{memory} = {source.bind('grown', trips.grown)}({memory}, {end}, {following})")
            elif sorted_:
                write(f"{memory} = {source.bind('settle', trips.settle)}({end}, {memory}, {following})")
    stacks.close()
    if totals:
        write(f"if not {count}:")
        with source.indented():
            _assign(emitter, totals, (emitter.zeros(var) for var, _ in layout.summed))
    for each, sorted_, memory, end in zip(layout.carried, by_row, memories, ends, strict=True):
        if sorted_ and reverse:
            write(f"{end} = {source.bind('grown', trips.grown)}({memory}, {end}, len({end}))")
        write(f"{name(each.final)} = " + (f"{rows}.unsort({end})" if sorted_ else memory))
    _assign(emitter, [name(outer) for _, outer in layout.summed], totals)
    emitter.forget([*(text for _, text in taken), *stacks.names, *totals, *memories, *ends])


def _gathered(emitter: "Emitter", stacks: "_Stacks | _RaggedStacks", line: "Line", var: Var, place: str, space: str, cut: str) -> bool:
    """Let what `var` is the concatenation of be computed in the columns of `space`, which `cut` cuts into places; say whether it is."""
    parts = line.placement.parts_of(var)
    places = [emitter.source.fresh(f"{part.name}_place") for part in parts]
    if not parts or not line.placement.gather(var, places, place):
        return False
    start = 0
    for part, text in zip(parts, places, strict=True):
        width = part.shape[-1]  # type: ignore[index]
        stacks.places.append(text)
        stacks.parts.append(f"{space}[..., {start}:{start + width}]{cut}")  # type: ignore[operator]
        start += width  # type: ignore[operator, assignment]
    return True


class _RaggedStacks:
    """What a `for` over ragged sequences hands out: steps, computed in a packed space where they can be."""

    def __init__(self, emitter: "Emitter", line: "Line", layout: Layout, rows: str, count: str, splits: Var, *, reverse: bool):
        self.places: list[str] = []
        self.parts: list[str] = []
        self.names: list[str] = []
        self._emitter, self._rows, self._count, self._splits, self._reverse = emitter, rows, count, splits, reverse
        self._copies: list[tuple[str, Var]] = []
        self._lists: list[tuple[str, Var]] = []
        self._steps: dict[Var, str] = {}
        self._spaces: dict[Var, str] = {}
        self._layout = layout
        self._apart = {inner for inner, _ in layout.stacked if line.placement.is_new(inner)}
        source = emitter.source
        for inner in dict.fromkeys(inner for inner, _ in layout.stacked):
            by_row = trips.is_by_row(inner, layout.body)
            text = emitter.space(inner, f"{rows}.total" if by_row else count, int(by_row)) if inner in self._apart else None
            self._steps[inner] = source.fresh(f"{inner.name}_steps")
            if text is None:
                self._lists.append((self._steps[inner], inner))
                source.write(f"{self._steps[inner]} = []")
                continue
            self._spaces[inner] = source.fresh(f"{inner.name}_space")
            self.places.append(source.fresh(f"{inner.name}_place"))
            source.write(f"{self._spaces[inner]} = {text}")
            cut = f".split({rows}.counts)" if by_row else ".unbind(0)"
            source.write(f"{self._steps[inner]} = {self._spaces[inner]}{cut}")
            self.parts.append(f"reversed({self._steps[inner]})" if reverse else self._steps[inner])
            place = self.places[-1]
            gathered = _gathered(self._emitter, self, line, inner, place, self._spaces[inner], cut + ("[::-1]" if reverse else ""))
            if not gathered and not line.placement.put(inner, place):
                self._copies.append((place, inner))

    def append(self) -> None:
        """At the end of a trip."""
        for place, var in self._copies:
            self._emitter.source.write(f"{place}.copy_({self._emitter.source.name(var)})")
        for steps, var in self._lists:
            self._emitter.source.write(f"{steps}.append({self._emitter.source.name(var)})")

    def close(self) -> None:
        """After the loop: what others need than loops over the same rows is joined."""
        source, line, body = self._emitter.source, self._emitter.lines[-1], self._layout.body
        for steps, _ in self._lists if self._reverse else ():
            source.write(f"{steps}.reverse()")
        for inner, outer in self._layout.stacked:
            steps, space = self._steps[inner], self._spaces.get(inner)
            if trips.is_by_row(inner, body):
                line.packed[outer] = source.fresh(f"{outer.name}_steps")
                source.write(f"{line.packed[outer]} = {steps}")
                if inner in self._apart:
                    line.apart.add(outer)
                if line.is_stepped_through(outer, self._splits):
                    line.unjoined.add(outer)
                    continue
                joined = f"{self._rows}.unpack({space})" if space else f"{self._rows}.join({steps})"
                empty = self._emitter.zeros(inner)
            else:
                joined = space or f"{source.bind('stack', trips.stack)}({steps})"
                empty = self._emitter.zeros(inner, (0,))
            source.write(f"{source.name(outer)} = " + (joined if space else f"{joined} if {self._count} else {empty}"))
        self.names = [*self._steps.values(), *self._spaces.values()]


def _while(emitter: "Emitter", op: Op) -> None:
    """A `while` on the condition that the body hands out."""
    source = emitter.source
    write, name = source.write, source.name
    layout = Layout.of(op)
    body = layout.body
    assert layout.condition is not None
    line = emitter.line(body, body.outputs)
    carried = [name(each.inside) for each in layout.carried]
    condition, trip = source.fresh("condition"), source.fresh("trip")
    stacks = [source.fresh(f"{inner.name}_stack") for inner, _ in layout.stacked]
    write(f"{condition} = {name(op.inputs['condition'][0])}")
    _assign(emitter, carried, (name(each.initial) for each in layout.carried))
    _assign(emitter, stacks, ("[]" for _ in stacks))
    write(f"{trip} = 0")
    write(f"while {condition}:", op)
    with source.indented(), emitter.body(body, trip):
        if op.attributes["max_trips"]:
            write(
                f"{source.bind('require_trips', trips.require_trips)}({trip}, {source.bind('max_trips', op.attributes['max_trips'])})", op
            )
        _write_body(emitter, line, body)
        write(f"{condition} = {name(layout.condition)}")
        for stack, (inner, _) in zip(stacks, layout.stacked, strict=True):
            write(f"{stack}.append({name(inner)})")
        _assign(emitter, carried, (name(each.following) for each in layout.carried))
        write(f"{trip} += 1")
        _forget_trip(emitter, body, set(carried))
    for stack, (inner, outer) in zip(stacks, layout.stacked, strict=True):
        write(f"{name(outer)} = {source.bind('stack', trips.stack)}({stack}) if {trip} else {emitter.zeros(inner, (0,))}")
    _assign(emitter, [name(each.final) for each in layout.carried], carried)
    emitter.forget([condition, *stacks, *carried])


def _branch(emitter: "Emitter", op: Op) -> None:
    """The lines of the block as they are or, for a condition, inside an `if`."""
    source = emitter.source
    write, name = source.write, source.name
    layout = Layout.of(op)
    body = layout.body
    line = emitter.line(body, body.outputs)
    given = [name(outer) for _, outer in layout.steps]
    inside = [name(inner) for inner, _ in layout.steps]
    outputs = [name(outer) for _, outer in layout.stacked]
    if "when" not in op.inputs:
        _assign(emitter, inside, given)
        with emitter.body(body, None):
            _write_body(emitter, line, body)
        _assign(emitter, outputs, (name(inner) for inner, _ in layout.stacked))
        _forget_trip(emitter, body, set())
        return
    write(f"if {name(op.inputs['when'][0])}:", op)
    with source.indented(), emitter.body(body, None):
        _assign(emitter, inside, (f"{value}[0]" for value in given))
        _write_body(emitter, line, body)
        _assign(emitter, outputs, (f"{source.bind('stack', trips.stack)}([{name(inner)}])" for inner, _ in layout.stacked))
        _forget_trip(emitter, body, set())
    write("else:")
    with source.indented():
        _assign(emitter, outputs, (emitter.zeros(inner, (0,)) for inner, _ in layout.stacked))


def _loop(emitter: "Emitter", op: Op) -> None:
    (_ragged if "splits" in op.inputs else _recurrent)(emitter, op)


WRITERS: dict[str, Callable[["Emitter", Op], None]] = {"recurrent": _loop, "while": _while, "branch": _branch}


def _write_body(emitter: "Emitter", line: "Line", body: Block) -> None:
    for var in body.inputs:
        emitter.define(var, uneven=True)
    emitter.straight(line)


def _forget_trip(emitter: "Emitter", body: Block, carried: set[str], places: Sequence[str] = ()) -> None:
    """Let go of what a trip was given and of what it has handed out: a stack or a memory holds on to what goes on."""
    computed = {var for op in body.ops for var in op.writes}
    gone = [*body.inputs, *(var for var in body.outputs if var in computed)]
    emitter.forget([*(text for text in map(emitter.source.name, gone) if text not in carried), *places])


def _read_inside(body: Block) -> set[Var]:
    """What the ops of a body read or it hands out."""
    return {*body.outputs, *(var for op in body.ops for var in op.reads)}


def _assign(emitter: "Emitter", names: Iterable[str], values: Iterable[str]) -> None:
    """Give each name its value, all at once."""
    names = list(names)
    if names:
        emitter.source.write(f"{', '.join(names)} = {', '.join(values)}")


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"

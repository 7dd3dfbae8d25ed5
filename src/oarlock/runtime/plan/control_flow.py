"""The source of ops with blocks: a `for`, a `while`, an `if`, around the lines of their blocks."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.op.control.layout import Carried, Layout
from oarlock.runtime.plan import loop_support
from oarlock.runtime.plan.buffer_assignment import Call
from oarlock.runtime.plan.last_trip import for_the_next_trip
from oarlock.runtime.plan.numbers import one_number
from oarlock.runtime.plan.own_memories import with_own_memories
from oarlock.runtime.plan.stacked_outputs import GrowingStacks, RaggedStacks, SegmentStacks, Stacks, Steps

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter
    from oarlock.runtime.plan.straight_line import StraightLine

__all__ = ["WRITERS", "in_steps", "stacks_a_memory", "steps_through", "wants_memory", "with_headroom"]


def _recurrent(emitter: "Emitter", op: Op) -> None:
    """A `for` over the steps. What it stacks is computed in the stack where it can be, or in the memory of a sequence that ends here.

    Over segments of the steps, what trips return is copied to the stacks, and nothing is written over.
    """
    source = emitter.source
    write, name = source.write, source.name
    layout, reverse = Layout.of(op), bool(op.attributes["reverse"])
    body = layout.body
    segments = op.attributes.get("segments", 0)
    line = emitter.line(body, body.outputs) if segments else _body_line(emitter, op)
    steps = [source.fresh(f"{inner.name}_steps") for inner, _ in layout.steps]
    count, trip = source.fresh("count"), source.fresh("trip")
    stepped = [_stepped(emitter, outer) for _, outer in layout.steps]
    if segments:
        sequences = ", ".join(name(outer) for _, outer in layout.steps)
        write(f"{_listed(steps)} = {source.bind('segments', loop_support.segments_of)}({segments}, {sequences})", op)
    elif len(steps) == 1 and emitter.lines[-1].steps_of(layout.steps[0][1]) is not None:
        write(f"{steps[0]} = {stepped[0]}", op)  # there, and of no other length
    else:
        write(f"{_listed(steps)} = {source.bind('steps', loop_support.steps_of)}({', '.join(stepped)})", op)
    write(f"{count} = len({steps[0]})")
    if not segments:
        _hold_longer(emitter, line, layout)
        line.dense.update(inner for inner, outer in layout.steps if emitter.lines[-1].steps_of(outer) is not None)
        goes_on = f"{trip}" if reverse else f"{trip} + 1 < {count}"
        line.conditions = dict.fromkeys(for_the_next_trip(emitter, line, layout), goes_on)
    stacks = (SegmentStacks if segments else Stacks)(emitter, line, layout, count, reverse=reverse)
    stacks.open()
    memories = [name(each.inside) for each in layout.carried]
    _assign(emitter, memories, (f"{name(each.initial)}{'.clone()' * (each.inside in line.own)}" for each in layout.carried))
    totals = [source.fresh(f"{inner.name}_total") for inner, _ in layout.summed]
    _assign(emitter, totals, ("None" for _ in totals))
    variables = [trip, *(name(inner) for inner, _ in layout.steps), *stacks.given]
    numbers = f"range({count} - 1, -1, -1)" if reverse else f"range({count})"
    parts = [numbers, *(f"reversed({step})" if reverse else step for step in steps), *stacks.given.values()]
    write(f"for {', '.join(variables)} in zip({', '.join(parts)}):")
    with source.indented(), emitter.body(body, trip):
        _write_body(emitter, line, body)
        stacks.append()
        for total, (var, _) in zip(totals, layout.summed, strict=True):
            more = f"{total}.add_({name(var)})" if _only_summed(line, layout, var) else f"{total} + {name(var)}"
            write(f"{total} = {name(var)} if {total} is None else {more}")
        _assign(emitter, memories, (name(each.following) for each in layout.carried))
        _forget_trip(emitter, body, set(memories), stacks.destinations)
    stacks.close()
    if totals:
        write(f"if not {count}:")
        with source.indented():
            _assign(emitter, totals, (emitter.zeros(var) for var, _ in layout.summed))
    _assign(emitter, [name(each.final) for each in layout.carried], memories)
    _assign(emitter, [name(outer) for _, outer in layout.summed], totals)
    emitter.forget([*steps, *stacks.names, *totals, *memories])


def _stepped(emitter: "Emitter", sequence: Var) -> str:
    """The text of a sequence, or of its steps where these are known."""
    steps = emitter.lines[-1].steps_of(sequence)
    return emitter.source.name(sequence) if steps is None else steps.text()


def _hold_longer(emitter: "Emitter", line: "StraightLine", layout: Layout) -> None:
    """Hold the buffers of sequences until nobody reads what the trips have written over their steps.

    What loops inside write over is not known: all that this one returns may be that.
    """
    outer_line, memory = emitter.lines[-1], line.buffers.alias_sets
    nested = any(op.blocks for op in layout.body.ops)
    returned = [*layout.stacked, *layout.summed, *((each.following, each.final) for each in layout.carried)]
    for step, sequence in layout.steps:
        steps = outer_line.steps_of(sequence)
        if steps is not None:
            outer_line.held[steps.buffer] += [outer for inner, outer in returned if nested or memory.may_share([inner], [step])]


def _only_summed(line: "StraightLine", layout: Layout, var: Var) -> bool:
    """Whether the sum over the trips may be computed in the memory of the first value of `var`."""
    returned = sum(other is var for other in layout.body.outputs)
    return returned == 1 and line.buffers.is_new(var) and line.buffers.is_even(var) and not line.buffers.alias_sets.is_lent(var)


def _ragged(emitter: "Emitter", op: Op) -> None:
    """A `for` over the steps of ragged sequences, which are packed: the rows that have a step lie one after another."""
    source = emitter.source
    write, name = source.write, source.name
    layout, reverse = Layout.of(op), bool(op.attributes["reverse"])
    body, outer_line, (splits,) = layout.body, emitter.lines[-1], op.inputs["splits"]
    count, trip = source.fresh("count"), source.fresh("trip")
    if splits not in outer_line.rows:
        outer_line.rows[splits] = source.fresh("rows")
        made = source.bind("ragged_rows", loop_support.RaggedRows)
        write(f"{outer_line.rows[splits]} = {made}({name(splits)}, {name(layout.steps[0][1])})", op)
    rows, used = outer_line.rows[splits], _read_inside(body)
    steps, given = [], []
    for inner, outer in layout.steps:
        packed, by_row = outer_line.packed.get(outer), loop_support.is_by_row(inner, body)
        if packed and packed.splits is not splits:  # other rows
            packed = None
        if outer_line.buffers.is_even(outer) and (packed.apart and outer_line.may_write_over(outer) if packed else by_row):
            given.append(inner)  # packed now, it is new
        steps.append(source.fresh(f"{inner.name}_steps"))
        if inner in used:
            write(f"{steps[-1]} = " + (packed.steps if packed else f"{rows}.split({name(outer)}, by_row={by_row})"), op)
        elif outer not in outer_line.unjoined:
            write(f"{rows}.check({name(outer)}, by_row={by_row})", op)
    line = emitter.line(body, body.outputs, given=given)
    write(f"{count} = {rows}.steps")
    memories = [name(each.inside) for each in layout.carried]
    by_row = [loop_support.is_by_row(each.inside, body) for each in layout.carried]
    ends = [source.fresh(f"{each.inside.name}_rows") for each in layout.carried]  # what rows without a step have
    for each, sorted_, memory, end in zip(layout.carried, by_row, memories, ends, strict=True):
        write(f"{end} = {rows}.sort({name(each.initial)})" if sorted_ else f"{end} = {name(each.initial)}")
        if sorted_:
            begun = end if reverse else f"{rows}.sort({name(each.initial)})"  # forward, rows that have ended are written into `end`
            write(f"{memory} = {begun}[:{rows}.counts[{-1 if reverse else 0}] if {count} else 0]")
        else:
            write(f"{memory} = {end}")
    stacks = RaggedStacks(emitter, line, layout, rows, count, splits, reverse=reverse)
    stacks.open()
    totals = [source.fresh(f"{inner.name}_total") for inner, _ in layout.summed]
    _assign(emitter, totals, ("None" for _ in totals))
    following = source.fresh("next_count")
    counts = f"[*{rows}.counts[-2::-1], 0]" if reverse else f"[*{rows}.counts[1:], 0]"
    taken = [(name(inner), step) for (inner, _), step in zip(layout.steps, steps, strict=True) if inner in used]
    active, now = source.fresh("count"), f"reversed({rows}.counts)" if reverse else f"{rows}.counts"
    variables = [trip, active, following, *(text for text, _ in taken), *stacks.given]
    numbers = f"range({count} - 1, -1, -1)" if reverse else f"range({count})"
    parts = [numbers, now, counts, *(f"reversed({step})" if reverse else step for _, step in taken), *stacks.given.values()]
    write(f"for {', '.join(variables)} in zip({', '.join(parts)}):")
    with source.indented(), emitter.body(body, trip):
        symbol = loop_support.active_rows(body)
        emitter.know(symbol, active)
        told = [var for var in loop_support.told_elsewhere(op, body) if var in used]
        if told:
            require, values = partial(loop_support.require_rows, symbol, vars=told), ", ".join(map(name, told))
            write(f"{source.bind('require_rows', require)}({active}, values=[{values}])", op)
        _write_body(emitter, line, body)
        stacks.append()
        for total, (var, _) in zip(totals, layout.summed, strict=True):
            write(f"{total} = {name(var)} if {total} is None else {total} + {name(var)}")
        _assign(emitter, memories, (name(each.following) for each in layout.carried))
        _forget_trip(emitter, body, {*memories, *(name(inner) for inner, _ in layout.steps if inner not in used)}, stacks.destinations)
        for memory, sorted_, end in zip(memories, by_row, ends, strict=True):
            if sorted_ and reverse:
                write(f"if {following}:")
                with source.indented():
                    write(f"{memory} = {source.bind('grown', loop_support.grown)}({memory}, {end}, {following})")
            elif sorted_:
                write(f"{memory} = {source.bind('settle', loop_support.settle)}({end}, {memory}, {following})")
    stacks.close()
    if totals:
        write(f"if not {count}:")
        with source.indented():
            _assign(emitter, totals, (emitter.zeros(var) for var, _ in layout.summed))
    for each, sorted_, memory, end in zip(layout.carried, by_row, memories, ends, strict=True):
        if sorted_ and reverse:
            write(f"{end} = {source.bind('grown', loop_support.grown)}({memory}, {end}, len({end}))")
        write(f"{name(each.final)} = " + (f"{rows}.unsort({end})" if sorted_ else memory))
    _assign(emitter, [name(outer) for _, outer in layout.summed], totals)
    emitter.forget([*(text for _, text in taken), *stacks.names, *totals, *memories, *ends])


def _while(emitter: "Emitter", op: Op) -> None:
    """A `while` on the condition that the body returns."""
    source = emitter.source
    write, name = source.write, source.name
    layout = Layout.of(op)
    body = layout.body
    assert layout.condition is not None
    line = emitter.line(body, body.outputs)
    carried = [name(each.inside) for each in layout.carried]
    condition, trip = source.fresh("condition"), source.fresh("trip")
    taken = [emitter.number if emitter.numbers.has(each.inside) else name for each in layout.carried]
    write(f"{condition} = {emitter.truth(op.inputs['condition'][0])}")
    _assign(emitter, carried, (text(each.initial) for text, each in zip(taken, layout.carried, strict=True)))
    write(f"{trip} = 0")
    stacks = GrowingStacks(emitter, line, layout, trip)
    stacks.open()
    write(f"while {condition}:", op)
    with source.indented(), emitter.body(body, trip):
        if op.attributes["max_trips"]:
            require = source.bind("require_trips", loop_support.require_trips)
            write(f"{require}({trip}, {source.bind('max_trips', op.attributes['max_trips'])})", op)
        for destination, part in stacks.given.items():
            write(f"{destination} = {part}")
        _write_body(emitter, line, body)
        write(f"{condition} = {emitter.truth(layout.condition)}")
        stacks.append()
        _assign(emitter, carried, (text(each.following) for text, each in zip(taken, layout.carried, strict=True)))
        write(f"{trip} += 1")
        _forget_trip(emitter, body, set(carried), stacks.destinations)
    stacks.close()
    _assign(emitter, [name(each.final) for each in layout.carried], (_final(emitter, each) for each in layout.carried))
    emitter.forget([condition, *stacks.names, *carried])


def _final(emitter: "Emitter", each: Carried) -> str:
    """The text of a carried value after a `while`: where the value is a number, ops that read a tensor get a tensor made of it."""
    source, numbers = emitter.source, emitter.numbers
    if not numbers.has(each.inside) or numbers.has(each.final) or not emitter.lines[-1].buffers.readers(each.final):
        return source.name(each.inside)
    return f"{source.bind('one_number', one_number(each.final.dtype))}({source.name(each.inside)})"


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
    ran = source.bind("require_ran", loop_support.require_ran) if given else ""
    write(f"if {emitter.truth(op.inputs['when'][0])}:", op)
    with source.indented(), emitter.body(body, None):
        if given:
            write(f"{ran}(True, {', '.join(given)})", op)
        _assign(emitter, inside, (f"{value}[0]" for value in given))
        _write_body(emitter, line, body)
        _assign(emitter, outputs, (f"{source.bind('stack', loop_support.stack)}([{name(inner)}])" for inner, _ in layout.stacked))
        _forget_trip(emitter, body, set())
    write("else:")
    with source.indented():
        if given:
            write(f"{ran}(False, {', '.join(given)})", op)
        _assign(emitter, outputs, (emitter.zeros(inner, (0,)) for inner, _ in layout.stacked))


def _body_line(emitter: "Emitter", op: Op) -> "StraightLine":
    """The line of a loop over even sequences, which writes over the steps that nobody reads afterwards, and over its own memories."""
    outer_line, layout = emitter.lines[-1], Layout.of(op)
    if op not in outer_line.bodies:
        number = outer_line.ops.index(op)
        given = [inner for inner, outer in layout.steps if outer_line.may_be_written_over(outer, number)]
        gapped = [inner for inner, outer in layout.steps if outer_line.buffers.has_gaps(outer)]
        outer_line.bodies[op] = with_own_memories(lambda own: emitter.line(layout.body, layout.body.outputs, own, gapped), layout, given)
    return outer_line.bodies[op]


def steps_through(op: Op) -> Sequence[Var]:
    """The even sequences that `op` is a loop over."""
    is_plain = op.type == "recurrent" and "splits" not in op.inputs and not op.attributes.get("segments")
    return op.inputs["sequences"] if is_plain else ()


def wants_memory(ops: Iterable[Op]) -> bool:
    """Whether memory is wanted more than time: whether there is a loop over segments."""
    return any(op.attributes.get("segments") for op in walk_ops(ops))


def stacks_a_memory(op: Op) -> bool:
    """Whether `op` is a loop over even sequences that returns what a memory was before each trip."""
    if not steps_through(op):
        return False
    layout = Layout.of(op)
    return not {each.inside for each in layout.carried}.isdisjoint(inner for inner, _ in layout.stacked)


def with_headroom(emitter: "Emitter", op: Op) -> Call | None:
    """How `op` computes a sequence with room for one value more: that of a memory, whose next values a loop writes over the steps.

    None where there is no such loop, or where `op` has no variant that computes in a destination.
    """
    line, out = emitter.lines[-1], emitter.out_variant(op)
    if out is None:
        return None
    (sequence,) = op.writes
    loop = next((reader for reader in line.buffers.readers(sequence) if reader is not None and stacks_a_memory(reader)), None)
    if loop is None or not line.may_be_written_over(sequence, line.ops.index(loop)):
        return None
    layout, body_line = Layout.of(loop), _body_line(emitter, loop)
    step = next((inner for inner, outer in layout.steps if outer is sequence), None)
    if step is None:
        return None
    stacked, origin = {inner for inner, _ in layout.stacked}, body_line.buffers.origin
    memories = [each for each in layout.carried if each.inside in stacked and origin(each.following) is step]
    if not memories:
        return None
    held = emitter.holds([sequence, *(each.final for each in memories)])  # which is one memory with what is stacked
    steps = _buffer_of(emitter, sequence, "[:-1]" if loop.attributes["reverse"] else "[1:]", more=" + 1", held=held)
    if steps is None:
        return None
    line.headroom[sequence] = steps.buffer
    return Call(out, steps.whole)


def in_steps(emitter: "Emitter", op: Op) -> Call | None:
    """How `op` computes a sequence in a buffer that is held from run to run, as its steps are; None where it is not one, or cannot be."""
    line, out = emitter.lines[-1], emitter.out_variant(op)
    if out is None:
        return None
    (result,) = op.writes
    if result not in line.sequences or not line.buffers.is_even(result) or not emitter.holds([result]):
        return None
    steps = _buffer_of(emitter, result, held=True)
    return None if steps is None else Call(out, steps.whole)


def _buffer_of(emitter: "Emitter", sequence: Var, slice: str = "", *, more: str = "", held: bool) -> Steps | None:
    """Make a buffer in which `sequence`, which is about to be computed, is a slice; None where a size is unknown."""
    line, length = emitter.lines[-1], emitter.length(sequence)
    text = None if length is None else emitter.buffer(sequence, f"{length}{more}", 1, held=held)
    if text is None:
        return None
    buffer = emitter.source.fresh(f"{sequence.name.partition('@')[0]}_buffer")
    emitter.source.write(f"{buffer} = {text}")
    steps = Steps(buffer, slice)
    if held:
        line.held[buffer] = []
        line.hold(steps, sequence)
    return steps


def _loop(emitter: "Emitter", op: Op) -> None:
    (_ragged if "splits" in op.inputs else _recurrent)(emitter, op)


WRITERS: dict[str, Callable[["Emitter", Op], None]] = {"recurrent": _loop, "while": _while, "conditional_block": _branch}


def _write_body(emitter: "Emitter", line: "StraightLine", body: Block) -> None:
    for var in body.inputs:
        emitter.define(var, uneven=True)
    emitter.straight(line)


def _forget_trip(emitter: "Emitter", body: Block, carried: set[str], destinations: Sequence[str] = ()) -> None:
    """Let go of what a trip was given and of what it has returned: a stack or a memory holds on to what goes on."""
    computed = {var for op in body.ops for var in op.writes}
    gone = [*body.inputs, *(var for var in body.outputs if var in computed and not emitter.numbers.vanishes(var))]
    emitter.forget([*(text for text in map(emitter.source.name, gone) if text not in carried), *destinations])


def _read_inside(body: Block) -> set[Var]:
    """The variables that the ops of a body read, and its outputs."""
    return {*body.outputs, *(var for op in body.ops for var in op.reads)}


def _assign(emitter: "Emitter", names: Iterable[str], values: Iterable[str]) -> None:
    """Give each name its value, all at once."""
    names = list(names)
    if names:
        emitter.source.write(f"{', '.join(names)} = {', '.join(values)}")


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"

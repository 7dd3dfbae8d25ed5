"""What ops with blocks become: a `for`, a `while`, an `if`, around the lines of their blocks."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.variable import Var
from oarlock.op.control.recurrence import split_outputs
from oarlock.runtime.plan import trips

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter

__all__ = ["WRITERS"]


def _recurrent(emitter: "Emitter", op: Op) -> None:
    """A `for` over the steps; of ragged sequences, with the books that the kernel keeps."""
    source = emitter.source
    write, name = source.write, source.name
    body = _body_of(op)
    sequences, initial = op.inputs["sequences"], op.inputs["initial"]
    reverse = bool(op.attributes["reverse"])
    memories = [name(var) for var in body.inputs[len(sequences) :]]
    stacked, following, summed = split_outputs(body.outputs, len(memories), op.attributes["summed"])  # type: ignore[arg-type]
    ragged = "splits" in op.inputs
    steps, count, trip, held = (source.fresh(stem) for stem in ("steps", "count", "trip", "memories"))
    stacks = [source.fresh(f"{var.name}_stack") for var in stacked]
    totals = [source.fresh(f"{var.name}_total") for var in summed]
    given = _listed(name(var) for var in sequences)
    if ragged:
        write(
            f"{steps} = {source.bind('ragged', trips.RaggedSteps)}({given}, {name(op.inputs['splits'][0])}, {source.bind('body', body)})",
            op,
        )
        write(f"{count} = {steps}.count")
        write(f"{held} = {steps}.begin({_listed(name(var) for var in initial)})")
    else:
        write(f"{steps} = {source.bind('steps', trips.steps_of)}(*{given})", op)
        write(f"{count} = len({steps}[0])")
        _assign(emitter, memories, (name(var) for var in initial))
    _assign(emitter, stacks, ("[]" for _ in stacks))
    _assign(emitter, totals, ("None" for _ in totals))
    write(f"for {trip} in range({f'{count} - 1, -1, -1' if reverse else count}):")
    with source.indented(), emitter.body(body, trip):
        if ragged:
            taken = f"{steps}.take({trip}) + {steps}.before({held}, {trip})"
            write(f"{_listed(name(var) for var in body.inputs)} = {taken}")
        else:
            _assign(
                emitter,
                [name(var) for var in body.inputs[: len(sequences)]],
                (f"{steps}[{number}][{trip}]" for number in range(len(sequences))),
            )
        _write_body(emitter, body)
        _append(emitter, stacks, stacked)
        for total, var in zip(totals, summed, strict=True):
            write(f"{total} = {name(var)} if {total} is None else {total} + {name(var)}")
        if ragged:
            write(f"{held} = {steps}.after({held}, {_listed(name(var) for var in following)}, {trip})")
        else:
            _assign(emitter, memories, (name(var) for var in following))
        _forget_trip(emitter, body, set() if ragged else set(memories))
    write(f"if {count}:")
    with source.indented():
        for outer, stack, var in zip(op.outputs["stacked"], stacks, stacked, strict=True):
            values = f"{stack}[::-1]" if reverse else stack
            write(
                f"{name(outer)} = "
                + (f"{steps}.join({source.bind('var', var)}, {values})" if ragged else f"{source.bind('stack', trips.stack)}({values})")
            )
        if ragged:
            write(f"{held} = {steps}.end({held})")
    write("else:")
    with source.indented():
        for outer, var in zip(op.outputs["stacked"], stacked, strict=True):
            write(f"{name(outer)} = {emitter.zeros(var, () if ragged and trips.is_by_row(var, body) else (0,))}")
        for total, var in zip(totals, summed, strict=True):
            write(f"{total} = {emitter.zeros(var)}")
        if ragged:
            write(f"{held} = {_listed(name(var) for var in initial)}")
    if ragged:
        write(f"{_listed(name(var) for var in op.outputs['final'])} = {held}")
    else:
        _assign(emitter, [name(var) for var in op.outputs["final"]], memories)
    _assign(emitter, [name(var) for var in op.outputs["sums"]], totals)
    emitter.forget([steps, *stacks, *totals, *([held] if ragged else memories)])


def _while(emitter: "Emitter", op: Op) -> None:
    """A `while` on the condition that the body hands out."""
    source = emitter.source
    write, name = source.write, source.name
    body = _body_of(op)
    carried = [name(var) for var in body.inputs]
    stacked = body.outputs[1 : len(body.outputs) - len(carried)]
    following = body.outputs[len(body.outputs) - len(carried) :]
    condition, trip = source.fresh("condition"), source.fresh("trip")
    stacks = [source.fresh(f"{var.name}_stack") for var in stacked]
    write(f"{condition} = {name(op.inputs['condition'][0])}")
    _assign(emitter, carried, (name(var) for var in op.inputs["initial"]))
    _assign(emitter, stacks, ("[]" for _ in stacks))
    write(f"{trip} = 0")
    write(f"while {condition}:", op)
    with source.indented(), emitter.body(body, trip):
        if op.attributes["max_trips"]:
            write(
                f"{source.bind('require_trips', trips.require_trips)}({trip}, {source.bind('max_trips', op.attributes['max_trips'])})", op
            )
        _write_body(emitter, body)
        write(f"{condition} = {name(body.outputs[0])}")
        _append(emitter, stacks, stacked)
        _assign(emitter, carried, (name(var) for var in following))
        write(f"{trip} += 1")
        _forget_trip(emitter, body, set(carried))
    for outer, stack, var in zip(op.outputs["stacked"], stacks, stacked, strict=True):
        write(f"{name(outer)} = {source.bind('stack', trips.stack)}({stack}) if {trip} else {emitter.zeros(var, (0,))}")
    _assign(emitter, [name(var) for var in op.outputs["final"]], carried)
    emitter.forget([condition, *stacks, *carried])


def _branch(emitter: "Emitter", op: Op) -> None:
    """The lines of the block as they are or, for a condition, inside an `if`."""
    source = emitter.source
    write, name = source.write, source.name
    body = _body_of(op)
    given = [name(var) for var in op.inputs["values"]]
    inside = [name(var) for var in body.inputs]
    outputs = [name(var) for var in op.outputs["outputs"]]
    if "when" not in op.inputs:
        _assign(emitter, inside, given)
        with emitter.body(body, None):
            _write_body(emitter, body)
        _assign(emitter, outputs, (name(var) for var in body.outputs))
        _forget_trip(emitter, body, set())
        return
    write(f"if {name(op.inputs['when'][0])}:", op)
    with source.indented(), emitter.body(body, None):
        _assign(emitter, inside, (f"{value}[0]" for value in given))
        _write_body(emitter, body)
        _assign(emitter, outputs, (f"{source.bind('stack', trips.stack)}([{name(var)}])" for var in body.outputs))
        _forget_trip(emitter, body, set())
    write("else:")
    with source.indented():
        _assign(emitter, outputs, (emitter.zeros(var, (0,)) for var in body.outputs))


WRITERS: dict[str, Callable[["Emitter", Op], None]] = {"recurrent": _recurrent, "while": _while, "branch": _branch}


def _body_of(op: Op) -> Block:
    body = op.attributes["body"]
    assert isinstance(body, Block)
    return body


def _write_body(emitter: "Emitter", body: Block) -> None:
    for var in body.inputs:
        emitter.define(var, uneven=True)
    emitter.straight(body.ops, body.outputs)


def _forget_trip(emitter: "Emitter", body: Block, carried: set[str]) -> None:
    """Let go of what a trip was given and of what it has handed out: a stack or a memory holds on to what goes on."""
    computed = {var for op in body.ops for var in op.writes}
    gone = [*body.inputs, *(var for var in body.outputs if var in computed)]
    emitter.forget(text for text in map(emitter.source.name, gone) if text not in carried)


def _append(emitter: "Emitter", stacks: Sequence[str], vars: Sequence[Var]) -> None:
    for stack, var in zip(stacks, vars, strict=True):
        emitter.source.write(f"{stack}.append({emitter.source.name(var)})")


def _assign(emitter: "Emitter", names: Sequence[str], values) -> None:
    """Give each name its value, all at once."""
    values = list(values)
    if names:
        emitter.source.write(f"{', '.join(names)} = {', '.join(values)}")


def _listed(names) -> str:
    return f"[{', '.join(names)}]"

"""Statements with blocks: each opens them, has them filled, and hands out some of what was written there."""

from collections.abc import Callable

import oarlock as ol
from generated.statements import STATEMENTS
from generated.writing import LIMIT, Writing
from oarlock.ir.block import Block
from oarlock.ir.size import Shape
from oarlock.ir.walk import free_vars, inner_blocks

__all__ = ["CONSTRUCTS", "write_statements"]

MAX_DEPTH = 3


def write_statements(w: Writing, count: int, *, nested: int = 45) -> None:
    """Write statements into the open block; where `nested` percent of chance has it, some of them with blocks."""
    blocks = 0
    for _ in range(count):
        if w.depth < MAX_DEPTH and blocks < 2 and w.choices.chance(nested // (blocks + 1)):
            blocks += 1
            w.choices.weighed(CONSTRUCTS)(w)
        else:
            w.choices.weighed(STATEMENTS)(w)


def _fill(w: Writing) -> None:
    write_statements(w, 1 + w.choices.below(4), nested=(40, 30, 20, 0)[w.depth])


def _successor(w: Writing, before: ol.Var) -> ol.Var:
    """What follows a value that is carried: something of its type, mostly one that depends on it."""
    if w.choices.chance(15):
        return w.value(lambda var: var.shape == before.shape, before)
    other = w.value(lambda var: before.shape[len(before.shape) - len(var.shape) :] == var.shape, before)
    after = ol.op.add(ol.op.multiply(before, w.number(0.6)), other) if w.choices.chance(50) else ol.op.multiply(before, other)
    return w.keep(ol.op.tanh(after), 1.0)


def _outputs(w: Writing, block: Block) -> list[ol.Var]:
    """One to three values to hand out, mostly of this block, at times one from around it or the same twice."""
    own = w.visible(lambda var: var.block is block)
    chosen = []
    for _ in range(1 + w.choices.below(3)):
        var = w.choices.pick(own) if own and not w.choices.chance(10) else w.find_value()
        if var is not None:
            chosen.append(var)
            if var.block is not block:
                w.features.add("outer variable handed out")
    return chosen


def shadow(w: Writing, block: Block) -> None:
    """Call a variable of a closed block what one around it is called, where nothing inside means that one."""
    inside = inner_blocks(block)
    meant = {var.name for inner in inside for var in free_vars(inner)}
    outer = [name for around in block.enclosing() if around is not block for name in around.vars]
    free = [name for name in dict.fromkeys(outer) if name not in meant and all(name not in inner.vars for inner in inside)]
    if free and block.vars:
        var = w.choices.pick(list(block.vars.values()))
        block.rename(var, w.choices.pick(free))
        w.features.add("shadowed")


def recurrence(w: Writing) -> None:
    """`ol.rnn`: sequences and memories of any number, either direction, outputs of any kind."""
    first = w.find_value(lambda var: bool(var.shape))
    if first is None or w.choices.chance(20):
        first = w.of_shape(*w.choices.pick(_sequence_shapes(w)))
    length = first.shape[0]
    sequences = [first]
    for _ in range(w.choices.below(3)):
        found = w.find_value(lambda var: bool(var.shape) and var.shape[0] == length)
        sequences += [] if found is None else [found]
    initial = [_initial(w, first) for _ in range(w.choices.pick((1, 2, 0, 3)))]
    reverse = w.choices.chance(40)
    rnn = ol.rnn(reverse=reverse)
    w.features |= {"reversed"} if reverse else set()
    w.features |= {f"{len(initial)} memories", f"{w.sizes[length]} steps" if length in w.sizes and w.sizes[length] < 2 else "2 steps or more"}
    zero = ol.op.fill(shape=(), value=0.0, dtype="int64") if w.choices.chance(10) else None
    with w.inside("rnn"), rnn.step():
        steps = [w.keep(rnn.step_input(sequence), w.bound(sequence)) for sequence in sequences]
        memories = [rnn.memory(init=var) for var in initial]
        before = [w.keep(rnn.previous_memory(memory), LIMIT) for memory in memories]
        if zero is not None:
            counter = rnn.memory(init=zero)
            count = rnn.previous_memory(counter) + 1
            rnn.update_memory(counter, count)
            w.keep(ol.op.multiply(ol.op.cast(count, dtype="float64"), w.number(0.2)), 1.0)
            w.features.add("counter")
        _fill(w)
        for memory, var in zip(memories, before, strict=True):
            rnn.update_memory(memory, _successor(w, var))
        body = steps[0].block
        outputs = _outputs(w, body)
        if before and w.choices.chance(20):
            outputs.append(w.choices.pick(before))
            w.features.add("memory handed out")
        rnn.output(*outputs)
    stacked = rnn()
    for var, inner in zip(stacked if isinstance(stacked, tuple) else [stacked], outputs, strict=True):
        w.keep(var, w.bound(inner))
    for memory in memories:
        w.keep(rnn.final_memory(memory), LIMIT)
    if w.choices.chance(25):
        shadow(w, body)


def _sequence_shapes(w: Writing) -> list[Shape]:
    return [("t", w.width), ("t", "n", w.width), ("t", w.pages, w.width), ("t",), (w.pages, w.width)]


def _initial(w: Writing, sequence: ol.Var) -> ol.Var:
    """What a memory starts as: a value in reach, of the shape of a step at times."""
    if w.choices.chance(40):
        return w.value(lambda var: var.shape == sequence.shape[1:], (w.width,))
    return w.value(lambda var: len(var.shape) <= 2, (w.width,))


CONSTRUCTS: list[tuple[int, Callable[[Writing], None]]] = [(10, recurrence)]

"""Loops: `ol.rnn` over sequences, `ol.while_loop` for as long as data say."""

from collections.abc import Sequence

import oarlock as ol
from generated.blocks import choose_outputs, construct, fill, initials, shadow, successors
from generated.writing import LIMIT, Writing, is_cut_in_front
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import Size

__all__ = ["cell", "recurrence", "sentences", "while_loop"]


@construct(10)
def recurrence(w: Writing) -> None:
    """Sequences and memories of any number, either direction, outputs of any kind; over ragged sequences too."""
    first = _first(w)
    length = first.shape[0]
    rows = w.rows_of(length)
    sequences = [first]
    for _ in range(w.choices.below(3)):
        sequences.append(w.value(lambda var: bool(var.shape) and var.shape[0] == length, first))
    initial: list[ol.Var] = []
    for _ in range(w.choices.pick((1, 2, 2, 0, 3))):
        initial.append(w.choices.pick(initial) if initial and w.choices.chance(40) else _initial(w, first, rows))
    initial = initials(w, initial)
    zero = ol.op.full(shape=(), value=0.0, dtype="int64") if w.choices.chance(10) and rows is None else None
    zeros = ol.op.full(shape=(w.width,), value=0.0, dtype="float64") if zero is not None else None
    reverse = w.choices.chance(40)
    rnn = ol.rnn(reverse=reverse)
    w.features |= {"rnn: reversed"} if reverse else set()
    w.features |= {f"rnn: {len(initial)} memories", f"rnn: {w.count(length)} steps" if rows is None else "rnn: ragged"}
    with w.inside("rnn", rows, runs=length != 0), rnn.step():
        body = current_block()
        for number, sequence in enumerate(sequences):
            named = number == 0 or w.choices.chance(70)
            step = w.keep(rnn.step_input(sequence) if named else body.seen(sequence), w.bound(sequence))
            if rows is None and w.choices.chance(30):
                w.keep(rnn.whole(sequence), w.bound(sequence))
                w.features.add("rnn: whole sequence")
            if w.choices.chance(30) and all(isinstance(size, int) for size in step.shape):
                w.keep(ol.op.add(step, w.parameter(*step.shape)), w.bound(step) + 1)
        memories = [rnn.memory(init=var) for var in initial]
        before = [w.keep(rnn.previous_memory(memory), LIMIT) for memory in memories]
        if zero is not None:
            counter = rnn.memory(init=zero)
            count = rnn.previous_memory(counter) + 1
            rnn.update_memory(counter, count)
            w.keep(ol.op.multiply(ol.op.cast(count, dtype="float64"), w.number(0.2)), 1.0)
            w.features.add("rnn: counter")
            state = rnn.memory(init=zeros)
            arrived = w.value(lambda var: var.shape == (w.width,), (w.width,))
            product = ol.op.linear(rnn.previous_memory(state), w.parameter(w.width, w.width))
            rnn.update_memory(state, w.keep(ol.op.tanh(ol.op.add(arrived, product)), 1.0))
            w.features.add("rnn: cell")
        fill(w)
        for memory, var in zip(memories, successors(w, before), strict=True):
            rnn.update_memory(memory, var)
        outputs = choose_outputs(w, body, rows)
        if before and w.choices.chance(20):
            outputs.append(w.choices.pick(before))
            w.features.add("rnn: memory returned")
        rnn.output(*outputs)
    stacked = rnn()
    for var, inner in zip(stacked if isinstance(stacked, tuple) else [stacked], outputs, strict=True):
        w.keep(var, w.bound(inner))
    for memory in memories:
        w.keep(rnn.final_memory(memory), LIMIT)
    shadow(w, body)


@construct(8)
def cell(w: Writing) -> None:
    """A recurrent layer as it is mostly written: what arrives and a product of the state, perhaps behind a gate."""

    def fits(var: ol.Var) -> bool:
        return len(var.shape) in (2, 3) and isinstance(var.shape[-1], int) and var.shape[-1] > 0 and w.rows_of(var.shape[0]) is None

    x = w.find_value(fits)
    x = w.of_shape("t", w.width) if x is None else x
    size = w.choices.pick((w.width, w.other))
    weights = [w.parameter(x.shape[-1], size) for _ in range(2)]  # type: ignore[arg-type]
    recurrent = [w.parameter(size, size) for _ in range(2)]
    bias = w.parameter(size) if w.choices.chance(50) else None
    start = ol.op.tanh(ol.op.reduce_sum(ol.op.linear(x, weights[0]), axis=0))
    start = ol.op.full_like(start, value=0.0, dtype="float64") if w.choices.chance(50) else start
    activation = w.choices.pick((ol.op.tanh, ol.op.tanh, ol.op.sigmoid))
    kind = w.choices.pick(("plain", "plain", "gated"))
    rnn = ol.rnn(reverse=w.choices.chance(30))
    w.features.add(f"cell: {kind}")
    with w.inside("rnn", runs=x.shape[0] != 0), rnn.step():
        body = current_block()
        step = rnn.step_input(x)
        weights, recurrent = ([rnn.whole(each) if each is x else each for each in those] for those in (weights, recurrent))
        memory = rnn.memory(init=start)
        before = rnn.previous_memory(memory)
        arrived, product = ol.op.linear(step, weights[0], bias), ol.op.linear(before, recurrent[0])
        state = activation(ol.op.add(arrived, product) if w.choices.chance(70) else ol.op.sum([product, arrived]))
        if kind == "gated":
            gate = ol.op.sigmoid(ol.op.add(ol.op.linear(step, weights[1]), ol.op.linear(before, recurrent[1])))
            one = w.number(1.0)
            state = ol.op.add(ol.op.multiply(gate, before), ol.op.multiply(ol.op.subtract(one, gate), state))
        rnn.update_memory(memory, state)
        rnn.output(state)
    w.ends.add(w.keep(rnn(), 1.0))
    if w.choices.chance(20):
        w.keep(rnn.final_memory(memory), 1.0)
    shadow(w, body)


def _first(w: Writing) -> ol.Var:
    """A sequence to step through: one in reach, or an input, which may be ragged."""
    found = w.find_value(lambda var: bool(var.shape) and w.may_be_stepped(var.shape[0]))
    if found is not None and not w.choices.chance(35):
        return found
    shapes = [("t", w.width), ("t", "n", w.width), ("t", w.pages, w.width), ("t",), (w.pages, w.width)]
    return w.ragged(w.width) if w.choices.chance(60) and w.may_be_ragged else w.of_shape(*w.choices.pick(shapes))


def _initial(w: Writing, sequence: ol.Var, rows: Size | None) -> ol.Var:
    """The initial value of a memory: a value in reach, of the shape of a step at times; of a ragged loop, with a row for each sequence."""
    if rows is not None:
        found = w.find_value(lambda var: is_cut_in_front(var.shape, rows))
        return _row_each(w, sequence, rows) if found is None else found
    if w.choices.chance(40):
        return w.value(lambda var: var.shape == sequence.shape[1:], (w.width,))
    return w.value(lambda var: len(var.shape) <= 2, (w.width,))


def _row_each(w: Writing, sequence: ol.Var, rows: Size) -> ol.Var:
    """A value with a row for each sequence: an input or, where it must not be fed, what pools them."""
    if w.may_be_fed((rows, w.width)):
        return w.of_shape(rows, w.width)
    return w.keep(ol.op.tanh(ol.layer.sequence_pool(sequence, "mean")), 1.0)


@construct(8)
def sentences(w: Writing) -> None:
    """A ragged loop as it is mostly written: words, a row of each sentence, a scalar that is learnt; perhaps a branch by word."""
    words = w.find_value(lambda var: len(var.shape) == 2 and w.rows_of(var.shape[0]) is not None and w.may_be_stepped(var.shape[0]))
    if words is None and not w.may_be_ragged:
        return recurrence(w)
    words = w.ragged(w.width) if words is None else words
    rows, size = w.rows_of(words.shape[0]), words.shape[1]
    assert rows is not None
    captured = w.value(
        lambda var: len(var.shape) == 2 and var.shape[0] == rows and isinstance(var.shape[1], int), _row_each(w, words, rows)
    )
    width = captured.shape[1]
    scale = w.parameter() if w.choices.chance(50) else w.of_shape()
    kind = w.choices.pick(("plain", "conditional_block", "memory", "conditional_block"))
    matrices = [w.parameter(size, width) for _ in range(2)]
    joined = w.parameter(2 * width, width) if kind == "conditional_block" else w.parameter(width, width)
    rnn = ol.rnn(reverse=w.choices.chance(30))
    w.features.add(f"sentences: {kind}")
    with w.inside("rnn", rows), rnn.step():
        body = current_block()
        word = rnn.step_input(words)
        factor = w.choices.pick((ol.op.square, ol.op.sigmoid, lambda x: x * x))(scale)
        parts = [captured * factor] if w.choices.chance(70) else [w.keep(captured, w.bound(captured))]
        if kind == "memory":
            memory = rnn.memory(init=captured)
            parts.append(ol.op.linear(rnn.previous_memory(memory), joined))
        if kind == "conditional_block":
            parts.append(_by_word(w, word, rows, matrices, joined))
        else:
            parts.append(ol.op.linear(word, matrices[0]))
        state = w.keep(ol.op.tanh(ol.op.sum(parts)), 1.0)
        if kind == "memory":
            rnn.update_memory(memory, state)
        outputs = [state, parts[0]] if w.choices.chance(30) else [parts[0] if w.choices.chance(30) else state]
        rnn.output(*outputs)
    stacked = rnn()
    for var in stacked if isinstance(stacked, tuple) else [stacked]:
        w.ends.add(w.keep(var, LIMIT**3))
    shadow(w, body)


def _by_word(w: Writing, word: ol.Var, rows: Size, matrices: Sequence[ol.Var], joined: ol.Var) -> ol.Var:
    """Words whose sum is positive go through two networks whose results are joined, the others through one."""
    ie = ol.ifelse()
    with w.inside("if_else", rows), ie.true_block():
        ie.output(ol.op.linear(ol.op.concat([ol.op.tanh(ol.op.linear(word, matrix)) for matrix in matrices], axis=1), joined))
    with w.inside("if_else", rows), ie.false_block():
        ie.output(ol.op.linear(word, w.choices.pick(matrices)))
    return ie(ol.op.greater(ol.op.reduce_sum(word, axis=1), w.number(0.0719)))


@construct(10)
def while_loop(w: Writing) -> None:
    """Trips are counted by a fuel that data fill and burn, so that their number depends on values; five at most."""
    start, least = w.choices.pick(((2.5, 0.3), (2.5, 0.3), (1.0, 0.3), (0.0, -0.9), (0.0, 0.5), (0.0, -0.9)))
    fuel = ol.op.add(ol.op.multiply(ol.op.sigmoid(w.scalar()), w.number(start)), w.number(least))
    w.keep(fuel, LIMIT)
    w.features |= {"while: no trip"} if least < 0 else set()
    carried: list[ol.Var] = []
    for _ in range(w.choices.pick((1, 2, 2, 0, 3))):
        shapes = {var.shape for var in carried if w.choices.chance(40)}
        carried.append(w.value(lambda var, shapes=shapes: var.shape in shapes if shapes else len(var.shape) <= 2, (w.width,)))
    carried = initials(w, carried)
    carried = [var for var in dict.fromkeys(carried) if var is not fuel]
    for var in (fuel, *carried):
        w.bound_anew(var, LIMIT)  # inside, it stands for what it is in each trip
    loop = ol.while_loop(ol.op.greater(fuel, w.number(0.0)), max_trips=w.choices.pick((None, 20)))
    with w.inside("while", runs=least >= 0), loop.block():
        body = current_block()
        fill(w)
        for var, following in zip(carried, successors(w, carried), strict=True):
            loop.carry(var, following)
        burnt = ol.op.add(ol.op.multiply(ol.op.sigmoid(w.scalar()), w.number(0.3)), w.number(0.6))
        left = w.keep(ol.op.subtract(fuel, burnt), LIMIT)
        loop.carry(fuel, left)
        loop.update_condition(ol.op.greater(left, w.number(0.0)))
        outputs = choose_outputs(w, body) if w.choices.chance(70) else []
        if outputs:
            loop.output(*outputs)
    results = loop()
    bounds = [LIMIT] * (len(carried) + 1) + [w.bound(var) for var in outputs]
    for var, bound in zip(results if isinstance(results, tuple) else [results], bounds, strict=True):
        w.keep(var, bound)
    shadow(w, body)

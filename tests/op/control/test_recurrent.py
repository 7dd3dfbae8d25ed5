"""The loop over the steps of a sequence, and its gradient, which is another one.

Each loop of the table is written once, over `Ours` (operators of a program) and `Theirs` (PyTorch, unrolled by Python's
`for`), so that values and derivatives of any order have something to agree with.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import numpy
import pytest
import torch
from sample_programs import nested_loops
from tolerances import AUTOGRAD, FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES, ORACLES, VALUES

import oarlock as ol

RANDOM = numpy.random.default_rng(11)


def agree(actual, expected, tolerance=AUTOGRAD):
    numpy.testing.assert_allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1])


EXECUTOR = ol.Executor()
"""One for all runs, so that what is run again is prepared once."""


def run(program, arrays, fetch):
    return EXECUTOR.run(program, arrays, fetch, scope=ol.Scope())


# Mission rows B19 to B23


@pytest.fixture
def oracle():
    """sigmoid(W x + U h), without bias, as the RNN document writes it."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64", batch="t")
        m = ol.layer.data("m", shape=[1], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=m)
            a = ol.layer.fc(rnn.step_input(x), 1, bias=False, name="W")
            b = ol.layer.fc(rnn.previous_memory(h), 1, bias=False, name="U")
            act = ol.layer.sigmoid(a + b)
            rnn.update_memory(h, act)
            rnn.output(a, b, act)
        outputs = rnn()
        cost = ol.op.reduce_sum(outputs[2])
        program.targets.update(cost=cost, final=rnn.final_memory(h))
    scope = ol.Scope()
    scope.set("W.w", numpy.array([[0.314]]))
    scope.set("U.w", numpy.array([[0.375]]))
    return SimpleNamespace(program=program, scope=scope, x=x, m=m, outputs=outputs, cost=cost)


@pytest.mark.mission("B22", "B23")
def test_the_rnn_of_the_document_computes_its_values(oracle):
    feed = {"x": numpy.array([[10.0], [20.0], [30.0]]), "m": numpy.zeros(1)}
    a, b, act, final = ol.Executor().run(oracle.program, feed, [*oracle.outputs, "final"], scope=oracle.scope)
    assert a.shape == b.shape == act.shape == (3, 1)
    agree(a.ravel(), [3.14, 6.28, 9.42], ORACLES)
    agree(b.ravel(), [0.0, 0.359442, 0.374510], ORACLES)
    agree(act.ravel(), [0.958513, 0.998694, 0.999944], ORACLES)
    assert final.tobytes() == act[2].tobytes()


@pytest.mark.mission("B23")
def test_the_rnn_of_the_document_has_the_gradients_that_were_computed_independently(oracle):
    wanted = [oracle.program.main.var("W.w"), oracle.program.main.var("U.w"), oracle.m, oracle.x]
    found = ol.gradients([oracle.cost], wanted)
    feed = {"x": numpy.array([[1.0], [2.0], [3.0]]), "m": numpy.zeros(1)}
    dw, du, dm, dx = ol.Executor().run(oracle.program, feed, found, scope=oracle.scope)
    agree(dw.ravel(), [1.245319], ORACLES)
    agree(du.ravel(), [0.253704], ORACLES)
    agree(dm.ravel(), [0.099168], ORACLES)
    agree(dx.ravel(), [0.083037, 0.070402, 0.055730], ORACLES)


@pytest.mark.mission("B19")
def test_the_first_step_reads_what_the_memory_starts_as_and_each_other_what_the_one_before_left():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch="t")
        m = ol.layer.data("m", shape=[], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=m)
            before = rnn.previous_memory(h)
            rnn.update_memory(h, rnn.step_input(x))
            rnn.output(before, rnn.previous_memory(h))
        first, again = rnn()
    values = run(program, {"x": [1.0, 2.0, 3.0], "m": 7.0}, [first, again])
    assert [value.tolist() for value in values] == [[7.0, 1.0, 2.0]] * 2


@pytest.mark.mission("B19")
@pytest.mark.parametrize("interpret", [False, True])
def test_each_state_is_named_by_its_memory_and_has_a_value_more_than_there_are_steps(interpret):
    """Two memories of one type, whose updates cross: neither takes the place of the other. No step leaves what they started as."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch="t")
        starts = [ol.layer.data(name, shape=[], dtype="float64", batch=None) for name in ("one", "two")]
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            memories = [rnn.memory(init=start) for start in starts]
            first, second = map(rnn.previous_memory, memories)
            rnn.update_memory(memories[1], first + step)
            rnn.update_memory(memories[0], second * step)
            rnn.output(first, second)
        outputs = rnn()
        finals = [rnn.final_memory(memory) for memory in memories]
        slopes = ol.gradients([finals[0] * 3.0 + finals[1]], starts)
    assert not any(isinstance(memory, ol.Var) for memory in memories)
    for steps in ([2.0, 3.0, 5.0], [7.0], []):
        slots = [(1.0, 10.0)]
        for step in steps:
            slots.append((slots[-1][1] * step, slots[-1][0] + step))
        feed = {"x": numpy.array(steps), "one": 1.0, "two": 10.0}
        fetch = [*outputs, *finals, *slopes]
        values = ol.Executor(interpret=interpret).run(program, feed, fetch, scope=ol.Scope())
        assert list(zip(*(value.tolist() for value in values[:2]), strict=True)) == slots[:-1]
        assert tuple(map(float, values[2:4])) == slots[-1]
        jacobian = numpy.eye(2)
        for step in steps:
            jacobian = numpy.array([[0.0, step], [1.0, 0.0]]) @ jacobian
        agree(numpy.array(list(map(float, values[4:]))), numpy.array([3.0, 1.0]) @ jacobian)


@pytest.mark.mission("B19", "C11")
def test_a_memory_is_no_variable_and_its_value_is_read_by_its_own_loop():
    with ol.Program():
        x = ol.layer.data("x", shape=[], dtype="float64", batch="t")
        start = ol.layer.data("start", shape=[], dtype="float64", batch=None)
        rnn, other = ol.rnn(), ol.rnn()
        with rnn.step():
            h = rnn.memory(init=start)
            step = rnn.step_input(x)
            for read in (lambda: ol.op.tanh(h), lambda: rnn.output(h), lambda: rnn.update_memory(h, h), lambda: step + h):
                with pytest.raises(ol.ArgumentError) as raised:
                    read()
                assert raised.value.hint.startswith("use rnn.previous_memory(memory) for its value before the step")
            rnn.update_memory(h, step)
            rnn.output(rnn.previous_memory(h))
        rnn()
        with other.step():
            other.step_input(x)
            for read in (other.previous_memory, lambda memory: other.update_memory(memory, step)):
                with pytest.raises(ol.ProgramError, match="this is not a memory of this rnn"):
                    read(h)


# Loops, each written once


OPEN: list[ol.layer.Recurrence] = []


@contextmanager
def opened(rnn):
    OPEN.append(rnn)
    try:
        yield
    finally:
        OPEN.pop()


class Ours:
    tanh, sigmoid, exp, linear, total, concat = (
        ol.op.tanh, ol.op.sigmoid, ol.op.exp, ol.op.linear, ol.op.reduce_sum, ol.op.concat,
    )  # fmt: skip

    @staticmethod
    def number(whole, like):
        return ol.op.cast(whole, dtype=like.dtype)

    @staticmethod
    def whole(sequence):
        """All of a sequence, in the step of the innermost loop."""
        return OPEN[-1].whole(sequence)

    @staticmethod
    def scan(step, sequences, memories=(), *, reverse=False):
        """(stacked outputs, final memories); `step` takes and gives lists of steps and memories."""
        rnn = ol.rnn(reverse=reverse)
        with rnn.step(), opened(rnn):
            steps = [rnn.step_input(sequence) for sequence in sequences]
            states = [rnn.memory(init=memory) for memory in memories]
            outputs, following = step(steps, [rnn.previous_memory(state) for state in states])
            for state, value in zip(states, following, strict=True):
                rnn.update_memory(state, value)
            rnn.output(*outputs)
        stacked = rnn()
        return list(stacked) if isinstance(stacked, tuple) else [stacked], [rnn.final_memory(state) for state in states]


class Theirs:
    tanh, sigmoid, exp, linear, total, concat = torch.tanh, torch.sigmoid, torch.exp, torch.matmul, torch.sum, torch.cat

    @staticmethod
    def number(whole, like):
        return whole.to(like.dtype)

    @staticmethod
    def whole(sequence):
        return sequence

    @staticmethod
    def scan(step, sequences, memories=(), *, reverse=False):
        steps = range(len(sequences[0]))
        memories, outputs = list(memories), []
        for number in reversed(steps) if reverse else steps:
            given, memories = step([sequence[number] for sequence in sequences], memories)
            outputs.append(given)
        return [torch.stack(column) for column in zip(*(outputs[::-1] if reverse else outputs), strict=True)], memories


def elman(f, v, reverse):
    def step(xs, ms):
        h = f.tanh(f.linear(xs[0], v.w) + f.linear(ms[0], v.u) + v.b)
        return [h], [h]

    stacked, final = f.scan(step, [v.xs], [v.m], reverse=reverse)
    return stacked + final


def lstm(f, v, reverse):
    """Two memories that depend on each other, a captured matrix each for what comes in and what was."""

    def step(xs, ms):
        h, c = ms
        z = f.linear(xs[0], v.w) + f.linear(h, v.u)
        c = f.sigmoid(z) * c + f.tanh(z) * f.sigmoid(z + v.b)
        h = f.tanh(c) * f.sigmoid(z)
        return [h, c], [h, c]

    stacked, final = f.scan(step, [v.xs], [v.m, v.b], reverse=reverse)
    return [stacked[0], final[1]]


def many_of_everything(f, v, reverse):
    """Two sequences, three memories, three outputs, not all of which meet."""

    def step(xs, ms):
        a = f.tanh(xs[0] + ms[0] * v.b)
        b = f.sigmoid(f.linear(xs[1], v.u)) * ms[1]
        c = ms[2] * f.sigmoid(ms[0])
        return [a, b, a * b], [a, b, c]

    stacked, final = f.scan(step, [v.xs, v.ys], [v.m, v.b, v.b], reverse=reverse)
    return stacked + final


def memories_that_change_places(f, v, reverse):
    def step(xs, ms):
        return [ms[0] * xs[0]], [ms[1], ms[0] * xs[0]]

    stacked, final = f.scan(step, [v.xs], [v.m, v.b], reverse=reverse)
    return stacked + final


def product(f, v, reverse):
    """Only the final memory is read."""

    def step(xs, ms):
        p = ms[0] * xs[0]
        return [xs[0]], [p]

    return f.scan(step, [v.xs], [v.m], reverse=reverse)[1]


def outer_parameter_returned(f, v, reverse):
    """The same captured variable in each step, beside something that depends on it."""

    def step(xs, ms):
        return [v.b, xs[0] * v.b, v.b], []

    return f.scan(step, [v.xs], reverse=reverse)[0]


def memory_set_from_outside(f, v, reverse):
    """From the second step on the memory is a captured variable itself."""

    def step(xs, ms):
        return [ms[0] * xs[0]], [v.b]

    stacked, final = f.scan(step, [v.xs], [v.m], reverse=reverse)
    return stacked + final


def memory_that_never_changes(f, v, reverse):
    def step(xs, ms):
        return [ms[0] * xs[0]], [ms[0]]

    stacked, final = f.scan(step, [v.xs], [v.m], reverse=reverse)
    return stacked + final


def memory_that_nobody_reads(f, v, reverse):
    def step(xs, ms):
        return [xs[0] * v.b], [f.tanh(ms[0])]

    return f.scan(step, [v.xs], [v.m], reverse=reverse)[0]


def memory_returned(f, v, reverse):
    """The output is the state before the step."""

    def step(xs, ms):
        return [ms[0]], [f.tanh(ms[0] + xs[0])]

    return f.scan(step, [v.xs], [v.m], reverse=reverse)[0]


def unused_step_input(f, v, reverse):
    def step(xs, ms):
        h = f.tanh(xs[1] + ms[0])
        return [h], [h]

    return f.scan(step, [v.ys, v.xs], [v.m], reverse=reverse)[0]


def step_input_returned(f, v, reverse):
    return f.scan(lambda xs, ms: ([xs[0], xs[0] * xs[0]], []), [v.xs], reverse=reverse)[0]


def delay(f, v, reverse):
    """An input comes out two steps later."""

    def step(xs, ms):
        return [ms[1]], [xs[0] * v.b, ms[0]]

    stacked, final = f.scan(step, [v.xs], [v.m, v.m], reverse=reverse)
    return stacked + final


def delay_line(f, v, reverse):
    """An input comes out three steps later, through memories that start as something no gradient is wanted of."""

    def step(xs, ms):
        return [ms[2], xs[0] * xs[0]], [f.tanh(xs[0] * v.b), ms[0] * v.b, ms[1] + ms[2] * v.b]

    return f.scan(step, [v.xs], [v.still] * 3, reverse=reverse)[0]


def counted(f, v, reverse):
    """A memory that counts, and scales what comes in."""

    def step(xs, ms):
        count = ms[1] + 1
        h = f.tanh(ms[0] + xs[0] * f.number(count, xs[0]))
        return [h], [h, count]

    stacked, final = f.scan(step, [v.xs], [v.m, v.zero], reverse=reverse)
    return stacked + final[:1]


def whole_sequence_seen_from_inside(f, v, reverse):
    def step(xs, ms):
        return [xs[0] * f.total(f.whole(v.xs))], []

    return f.scan(step, [v.xs], reverse=reverse)[0]


def loop_after_loop(f, v, reverse):
    """The second loop runs the other way, over what the first returned, from where it ended."""

    def step(xs, ms):
        h = f.tanh(xs[0] + f.linear(ms[0], v.u))
        return [h], [h]

    stacked, final = f.scan(step, [v.xs], [v.m], reverse=reverse)
    stacked, final = f.scan(step, stacked, final, reverse=not reverse)
    return stacked + final


def loop_in_a_loop(f, v, reverse):
    """Pages of lines: the inner loop starts from the outer one's memory, and reads its step and a parameter."""

    def page(xs, ms):
        def line(ls, ns):
            h = f.tanh(ls[0] + ns[0] * v.b + f.total(f.whole(xs[0])) * ms[0])
            return [h * v.m], [h]

        stacked, final = f.scan(line, [xs[0]], [ms[0]])
        return [stacked[0], f.total(stacked[0])], [final[0]]

    stacked, final = f.scan(page, [v.pages], [v.m], reverse=reverse)
    return stacked + final


def inner_loop_over_an_outer_sequence(f, v, reverse):
    """Each step runs over a whole sequence of the main block, the other way round: a crude attention."""

    def step(xs, ms):
        def look(ls, ns):
            score = f.exp(f.total(ls[0] * xs[0]))
            return [], [ns[0] + score * ls[0], ns[1] + score]

        _, (weighed, total) = f.scan(look, [f.whole(v.ys)], [ms[0], v.one], reverse=True)
        h = f.tanh(weighed / total)
        return [h], [h]

    stacked, final = f.scan(step, [v.xs], [v.m], reverse=reverse)
    return stacked + final


def three_deep(f, v, reverse):
    def page(xs, ms):
        def line(ls, ns):
            def letter(es, os):
                o = f.tanh(os[0] * es[0] + f.total(ms[0] * v.b))
                return [], [o]

            _, (last,) = f.scan(letter, [ls[0]], [f.total(ns[0])])
            n = ns[0] * last + xs[0][0] if isinstance(xs[0], torch.Tensor) else ns[0] * last + first_of(f.whole(xs[0]))
            return [], [n]

        _, (n,) = f.scan(line, [xs[0]], [ms[0]], reverse=True)
        return [n], [f.tanh(n)]

    stacked, final = f.scan(page, [v.pages], [v.m], reverse=reverse)
    return stacked + final


def first_of(rows):
    """The first row, by a loop: the final memory of a loop over the rows from the last to the first."""
    zero = ol.op.full(shape=rows.shape[1:], value=0.0, dtype=rows.dtype)
    return Ours.scan(lambda xs, ms: ([], [xs[0]]), [rows], [zero], reverse=True)[1][0]


LOOPS: list[Callable] = [
    elman,
    lstm,
    many_of_everything,
    memories_that_change_places,
    product,
    outer_parameter_returned,
    memory_set_from_outside,
    memory_that_never_changes,
    memory_that_nobody_reads,
    memory_returned,
    unused_step_input,
    step_input_returned,
    delay,
    delay_line,
    counted,
    whole_sequence_seen_from_inside,
    loop_after_loop,
    loop_in_a_loop,
    inner_loop_over_an_outer_sequence,
    three_deep,
]

SHAPES = {
    "xs": ("t", 3),
    "ys": ("t", 3),
    "pages": ("t", 2, 3),
    "m": (3,),
    "b": (3,),
    "w": (3, 3),
    "u": (3, 3),
    "one": (),
    "still": (3,),
    "zero": (),
}


def arrays_for(length: int) -> dict[str, numpy.ndarray]:
    sizes = {name: [length if size == "t" else size for size in shape] for name, shape in SHAPES.items()}
    arrays = {name: RANDOM.uniform(-0.9, 0.9, size=shape) for name, shape in sizes.items()}
    return arrays | {"one": numpy.array(1.0), "zero": numpy.array(0)}


@dataclass
class Model:
    """A loop of the table as a program, with a cost, and its derivatives with respect to every float input."""

    program: ol.Program
    arrays: dict[str, numpy.ndarray]
    names: list[str]
    outputs: list[ol.Var]
    cost: ol.Var
    first: list[ol.Var | None]
    second: list[ol.Var | None]


def weigh(f, values):
    """One number that depends on every element in its own way; None counts as zeros."""
    weights = [(value, number + 0.5) for number, value in enumerate(values) if value is not None]
    parts = [f.total(f.tanh(value * weight)) + f.total(value) * 0.1 for value, weight in weights]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def build(loop: Callable, reverse: bool) -> Model:
    arrays = arrays_for(4)
    with ol.Program() as program:
        declared = {name: ol.layer.data(name, shape=shape, dtype=str(arrays[name].dtype), batch=None) for name, shape in SHAPES.items()}
        outputs = loop(Ours, SimpleNamespace(**declared), reverse)
        cost = weigh(Ours, outputs)
        names = [name for name in SHAPES if name not in ("still", "zero")]
        wanted = [declared[name] for name in names]
        first = ol.gradients([cost], wanted)
        second = ol.gradients([weigh(Ours, first)], wanted)
    return Model(program, arrays, names, outputs, cost, first, second)


def expected(loop: Callable, reverse: bool, arrays: dict[str, numpy.ndarray]):
    """Outputs, first and second derivatives, by PyTorch."""
    tensors = {name: torch.tensor(array, requires_grad=array.dtype == numpy.float64) for name, array in arrays.items()}
    wanted = [tensors[name] for name in SHAPES if name not in ("still", "zero")]
    outputs = loop(Theirs, SimpleNamespace(**tensors), reverse)
    first = torch.autograd.grad(weigh(Theirs, outputs), wanted, create_graph=True, allow_unused=True)
    second = torch.autograd.grad(weigh(Theirs, first), wanted, allow_unused=True)
    return [[value if value is None else value.detach() for value in values] for values in (outputs, first, second)]


def found(model: Model, arrays: dict[str, numpy.ndarray]):
    """Outputs, first and second derivatives, by one run; None where there is no gradient."""
    columns = [model.outputs, model.first, model.second]
    values = iter(run(model.program, arrays, [var for column in columns for var in column if var is not None]))
    return [[None if var is None else next(values) for var in column] for column in columns]


def compare(ours, theirs, shapes):
    """Each gradient agrees; one that is not there is zero."""
    for actual, hoped, shape in zip(ours, theirs, shapes, strict=True):
        zero = torch.zeros(shape, dtype=torch.float64)
        actual = zero if actual is None else actual
        assert actual.shape == shape
        agree(actual, zero if hoped is None else hoped)


EVERY_LOOP = pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
BOTH_WAYS = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
MODELS: dict[tuple[Callable, bool], Model] = {}


def model_of(loop, reverse) -> Model:
    if (loop, reverse) not in MODELS:
        MODELS[loop, reverse] = build(loop, reverse)
    return MODELS[loop, reverse]


@EVERY_LOOP
@BOTH_WAYS
@pytest.mark.parametrize("length", [4, 1])
def test_a_loop_and_its_gradients_agree_with_autograd(loop, reverse, length):
    """Values, first and second derivatives."""
    model = model_of(loop, reverse)
    arrays = arrays_for(length)
    shapes = [arrays[name].shape for name in model.names]
    (values, *derivatives), (hoped, *slopes) = found(model, arrays), expected(loop, reverse, arrays)
    for ours, theirs in zip(values, hoped, strict=True):
        agree(ours, theirs)
    for ours, theirs in zip(derivatives, slopes, strict=True):
        compare(ours, theirs, shapes)


@EVERY_LOOP
def test_the_gradient_of_a_loop_agrees_with_finite_differences(loop):
    """Along one random direction per input."""
    model = model_of(loop, False)
    for name, slope in zip(model.names, found(model, model.arrays)[1], strict=True):
        direction = RANDOM.normal(size=model.arrays[name].shape)
        above, below = (
            run(model.program, model.arrays | {name: model.arrays[name] + sign * FINITE_DIFFERENCE_STEP * direction}, [model.cost])[0]
            for sign in (1, -1)
        )
        hoped = 0.0 if slope is None else (slope * direction).sum()
        agree((above - below) / (2 * FINITE_DIFFERENCE_STEP), hoped, FINITE_DIFFERENCES)


@EVERY_LOOP
def test_a_loop_that_is_written_and_read_runs_bit_for_bit_as_before(loop):
    model = model_of(loop, True)
    read = ol.Program.from_bytes(model.program.to_bytes())
    fetch = [var.name for var in (*model.outputs, *model.first, *model.second) if var is not None]
    before, after = (run(program, model.arrays, fetch) for program in (model.program, read))
    assert [value.tobytes() for value in before] == [value.tobytes() for value in after]
    assert read.to_bytes() == model.program.to_bytes()


@EVERY_LOOP
def test_a_loop_is_built_the_same_each_time(loop):
    assert build(loop, False).program.to_bytes() == model_of(loop, False).program.to_bytes()


# No steps


def without_steps(model):
    return model.arrays | {name: model.arrays[name][:0] for name in ("xs", "ys", "pages")}


@EVERY_LOOP
@BOTH_WAYS
def test_a_loop_of_no_steps_hands_its_memories_through(loop, reverse):
    """Stacks have length 0, memories end as they began, nothing captured has a part in it."""
    model = model_of(loop, reverse)
    arrays = without_steps(model)
    outputs, first, second = found(model, arrays)
    starts = {arrays[name].tobytes() for name in ("m", "b", "still")}
    for var, value in zip(model.outputs, outputs, strict=True):
        if var.shape[:1] == ("t",):
            assert value.shape[0] == 0
            assert value.shape[1:] == tuple(var.shape[1:])
        else:
            assert value.tobytes() in starts
    finals = [value for var, value in zip(model.outputs, outputs, strict=True) if var.shape[:1] != ("t",)]
    for name, slope in zip(model.names, first, strict=True):
        if slope is not None:
            assert slope.shape == arrays[name].shape
            assert (finals and name in ("m", "b")) or not slope.any()
    assert all(slope is None or slope.shape == arrays[name].shape for name, slope in zip(model.names, second, strict=True))


def test_the_gradient_at_the_end_of_no_steps_is_that_at_the_beginning():
    model = model_of(elman, False)
    arrays = without_steps(model)
    names = dict(zip(model.names, model.first, strict=True))
    start = torch.tensor(arrays["m"], requires_grad=True)
    weigh(Theirs, [torch.zeros(0, 3, dtype=torch.float64), start]).backward()
    dm, dw, db, dxs = run(model.program, arrays, [names[name] for name in ("m", "w", "b", "xs")])
    agree(dm, start.grad)
    assert (dw.shape, dw.any(), db.shape, db.any(), dxs.shape) == ((3, 3), False, (3,), False, (0, 3))


def test_a_loop_of_no_steps_inside_a_loop_hands_the_memory_through_each_time():
    program = nested_loops()
    feed = {"pages": numpy.zeros((4, 0, 3), "float32"), "start": numpy.array([1.0, 2.0, 6.0], "float32")}
    scope = ol.init(program, ol.Scope())
    fetch = ["rnn_0.stacked.0", "cost", "start@GRAD", "decay@GRAD"]
    moods, cost, dstart, ddecay = ol.Executor().run(program, feed, fetch, scope=scope)
    assert moods.tolist() == [[1.0, 2.0, 6.0]] * 4
    assert cost == 3.0
    agree(dstart, numpy.full(3, 1 / 3), VALUES[torch.float32])
    assert ddecay.tolist() == [0.0] * 3


# The shape of the gradient


def loops_of(program):
    return [op for block in program.blocks for op in block.ops if op.type == "recurrent"]


def test_the_gradient_of_a_loop_is_a_loop_the_other_way():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[3], batch="t")
        m = ol.layer.data("m", shape=[3], batch=None)
        w = ol.layer.data("w", shape=[3], batch=None)
        Ours.scan(lambda steps, ms: ([ms[0]], [steps[0] * ms[0] * w]), [xs], [m])
        ol.gradients([program.main.ops[0].outputs["final"][0]], [xs, m, w])
    forward, backward = loops_of(program)
    assert (forward.attributes["reverse"], backward.attributes["reverse"]) == (False, True)
    assert [var.name for var in backward.writes] == ["xs@GRAD", "m@GRAD", "w@GRAD"]
    assert {slot: len(vars) for slot, vars in backward.outputs.items()} == {"stacked": 1, "final": 1, "sums": 1}
    assert backward.attributes["summed"] == 1


def test_a_stack_that_is_there_is_used_again():
    """The gradient of tanh reads its result, which the loop returns already."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[3], batch="t")
        stacked, _ = Ours.scan(lambda steps, ms: ([ol.op.tanh(steps[0])], []), [xs])
        count = len(program.main.vars)
        ol.gradients(stacked, [xs])
    forward, backward = loops_of(program)
    assert forward.outputs["stacked"] == (stacked[0],)
    assert [var.name for var in backward.inputs["sequences"]] == ["rnn_0.stacked.0@GRAD", "rnn_0.stacked.0"]
    assert len(program.main.vars) == count + 2


def test_only_what_the_gradient_reads_is_returned_in_addition():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[3], batch="t")
        w = ol.layer.data("w", shape=[3], batch=None)
        stacked, _ = Ours.scan(lambda steps, ms: ([ol.op.tanh(steps[0] + w) + steps[0]], []), [xs])
        ol.gradients(stacked, [w])
    forward, backward = loops_of(program)
    assert [var.name for var in forward.outputs["stacked"]] == ["rnn_0.stacked.0", "tanh_0@STACK_0"]
    assert {slot: len(vars) for slot, vars in backward.outputs.items()} == {"stacked": 0, "final": 0, "sums": 1}


def test_a_memory_that_counts_drops_out_of_the_gradient():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], dtype="float64", batch="t")
        zero = ol.layer.data("zero", shape=[], dtype="int64", batch=None)
        start = ol.layer.data("start", shape=[], dtype="float64", batch=None)
        step = lambda steps, ms: ([steps[0] * ol.op.cast(ms[0], dtype="float64")], [ms[0] + 1, ms[1] + 1.0])  # noqa: E731
        stacked, finals = Ours.scan(step, [xs], [zero, start])
        found = ol.gradients(stacked, [xs])[0]
    backward = loops_of(program)[1]
    assert backward.inputs["initial"] == ()
    value, count = run(program, {"xs": [1.0, 1.0, 1.0], "zero": 5, "start": 0.0}, [found, finals[0]])
    assert value.tolist() == [5.0, 6.0, 7.0]
    assert (count, count.dtype) == (8, numpy.int64)


def test_a_captured_variable_is_listed_by_every_loop_around_it():
    with ol.Program() as program:
        pages = ol.layer.data("pages", shape=[2], batch="t")
        w = ol.layer.data("w", shape=[], batch=None)
        outer = ol.rnn()
        with outer.step():
            inner = ol.rnn()
            with inner.step():
                inner.output(inner.step_input(outer.step_input(pages)) * w)
            outer.output(inner())
        outer()
    assert [op.inputs["free"] for op in loops_of(program)] == [(w,), (w,)]


# Use and misuse


@pytest.fixture
def sequence():
    with ol.Program():
        yield ol.layer.data("xs", shape=[3], batch="t")


@pytest.fixture
def zeros(sequence):
    return ol.op.full(shape=(3,), value=0.0)


def refused(call, error, message, *rest, hint=None):
    with pytest.raises(error) as caught:
        call()
    lines = [message, f"  {caught.value.location}", *rest]
    if hint:
        lines.append(f"  Try: {hint}    (oarlock explain {error.__name__})")
    assert str(caught.value) == "\n".join(lines)
    assert caught.value.location.file.endswith("test_recurrent.py")


def test_one_output_is_a_variable_and_several_are_a_tuple(sequence):
    results = []
    for count in (0, 1, 2):
        rnn = ol.rnn()
        with rnn.step():
            x = rnn.step_input(sequence)
            rnn.output(*[x] * count)
        results.append(rnn())
    assert results[0] == ()
    assert results[1].type_text == "float32[t, 3]"
    assert [var.type_text for var in results[2]] == ["float32[t, 3]"] * 2


def test_a_sequence_is_stepped_through_once_however_often_it_is_named(sequence):
    rnn = ol.rnn()
    with rnn.step():
        assert rnn.step_input(sequence) is rnn.step_input(sequence)
        rnn.output(rnn.step_input(sequence))
    assert rnn().op.inputs["sequences"] == (sequence,)


@pytest.mark.parametrize("what", ["step_input", "memory", "previous_memory", "update_memory", "output"])
def test_a_step_is_described_inside_its_block(sequence, what):
    rnn = ol.rnn()
    arguments = (sequence,)
    if what in ("previous_memory", "update_memory"):
        arguments = (None, sequence)[: 1 + (what == "update_memory")]
    message = f"rnn.{what}: call it inside `with rnn.step():`"
    refused(lambda: getattr(rnn, what)(*arguments), ol.ProgramError, message)
    with rnn.step():
        rnn.output(rnn.step_input(sequence))
    refused(lambda: getattr(rnn, what)(*arguments), ol.ProgramError, message)


def test_a_loop_has_one_step_block(sequence):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(rnn.step_input(sequence))

    def again():
        with rnn.step():
            pass

    refused(again, ol.ProgramError, "rnn: it already has a step block")


@pytest.mark.mission("B20")
def test_a_memory_is_updated_just_once(sequence, zeros):
    rnn = ol.rnn()
    with rnn.step():
        x = rnn.step_input(sequence)
        memory = rnn.memory(init=zeros)
        rnn.update_memory(memory, x)
        refused(
            lambda: rnn.update_memory(memory, x),
            ol.ProgramError,
            "rnn.update_memory: this memory is already updated",
            f"      {x.describe()}",
        )


@pytest.mark.mission("B20")
def test_a_memory_that_is_never_updated_is_refused_where_it_was_made_and_the_step_is_taken_back(sequence, zeros):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(rnn.step_input(sequence))
        memory = rnn.memory(init=zeros)
    with pytest.raises(ol.ProgramError) as caught:
        rnn()
    location = memory.previous.location
    hint = "  Try: call rnn.update_memory(memory, value) in the step    (oarlock explain ProgramError)"
    assert str(caught.value) == f"rnn: a memory is never updated\n  {location}\n{hint}"
    assert location is not None
    assert location.text == "memory = rnn.memory(init=zeros)"
    assert sequence.block.program.blocks == [sequence.block]
    with rnn.step():
        rnn.output(rnn.step_input(sequence))
    assert rnn().type_text == "float32[t, 3]"


@pytest.mark.parametrize(("shape", "dtype"), [((2,), "float32"), ((1, 3), "float32"), ((3,), "float64")])
def test_a_memory_keeps_its_type(sequence, shape, dtype):
    start = ol.op.full(shape=shape, value=0.0, dtype=dtype)
    rnn = ol.rnn()
    with rnn.step():
        x = rnn.step_input(sequence)
        memory = rnn.memory(init=start)
        refused(
            lambda: rnn.update_memory(memory, x),
            ol.ShapeError,
            f"rnn.update_memory: the state starts as {start.type_text} but becomes float32[3]",
            f"      {start.describe()}",
            f"      {x.describe()}",
        )


def test_a_memory_belongs_to_its_loop(sequence, zeros):
    outer = ol.rnn()
    with outer.step():
        x = outer.step_input(sequence)
        theirs = outer.memory(init=zeros)
        inner = ol.rnn()
        with inner.step():
            refused(lambda: inner.previous_memory(theirs), ol.ProgramError, "rnn.previous_memory: this is not a memory of this rnn")
            refused(lambda: inner.update_memory(theirs, x), ol.ProgramError, "rnn.update_memory: this is not a memory of this rnn")
            inner.output(inner.step_input(x))
        inner()
        refused(lambda: inner.final_memory(theirs), ol.ProgramError, "rnn.final_memory: this is not a memory of this rnn")


def test_a_final_memory_is_there_when_the_loop_is_closed(sequence, zeros):
    rnn = ol.rnn()
    with rnn.step():
        memory = rnn.memory(init=zeros)
        rnn.update_memory(memory, rnn.step_input(sequence))
    refused(lambda: rnn.final_memory(memory), ol.ProgramError, "rnn.final_memory: call rnn() first")
    rnn()
    assert rnn.final_memory(memory).type_text == "float32[3]"


def test_a_loop_is_closed_once_and_after_its_step(sequence):
    message = "rnn(): close it once, after its step block"
    rnn = ol.rnn()
    refused(rnn, ol.ProgramError, message)
    with rnn.step():
        rnn.output(rnn.step_input(sequence))
        refused(rnn, ol.ProgramError, message)
    rnn()
    refused(rnn, ol.ProgramError, message)


CONTRACT = "  a step reads a sequence: a variable whose first size is t, as of ol.sequence, a ragged value, or a step input"


@pytest.mark.usefixtures("sequence")
def test_a_loop_steps_through_something():
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.full(shape=(), value=0.0))
    refused(rnn, ol.ProgramError, "rnn: there is no sequence to step through", CONTRACT, hint="call rnn.step_input(sequence) in the step")


@pytest.mark.parametrize("what", ["step_input", "memory"])
def test_what_a_loop_begins_with_is_made_before_it(sequence, what):
    rnn = ol.rnn()
    with rnn.step():
        inside = ol.op.full(shape=(3,), value=0.0)
        refused(
            lambda: getattr(rnn, what)(inside),
            ol.ProgramError,
            f'rnn.{what}: "full_0" has a value inside the step only, but the loop needs it before its first step',
            f"      {inside.describe()}",
            hint="compute it before `with rnn.step():`",
        )
        rnn.output(rnn.step_input(sequence))


def test_a_number_is_no_sequence(sequence):
    number = ol.op.reduce_sum(sequence)
    rnn = ol.rnn()
    with rnn.step():
        refused(
            lambda: rnn.step_input(number),
            ol.ShapeError,
            "rnn.step_input: reduce_sum_0 has no dimension to step through",
            f"      {number.describe()}",
        )
        rnn.output(rnn.step_input(sequence))


@pytest.mark.parametrize(
    ("what", "argument"), [("step_input", "sequence"), ("memory", "init"), ("output", "value"), ("update_memory", "value")]
)
def test_what_is_no_variable_is_refused(sequence, zeros, what, argument):
    rnn = ol.rnn()
    with rnn.step():
        memory = rnn.memory(init=zeros)
        arguments = (memory, 3.0) if what == "update_memory" else (3.0,)
        refused(
            lambda: getattr(rnn, what)(*arguments),
            ol.ArgumentError,
            f"rnn.{what}: {argument} must be a variable of a program, not float 3.0",
        )
        rnn.update_memory(memory, rnn.step_input(sequence))


def test_sequences_have_one_length(sequence):
    other = ol.layer.data("others", shape=[3], batch="s")
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(rnn.step_input(sequence) + rnn.step_input(other))
    refused(
        rnn,
        ol.ShapeError,
        "recurrent: sequence 1 has s steps but sequence 0 has t",
        "  recurrent(*sequences: any, *initial: any, *free: any, splits?: int64[s], summed=0, reverse=False, segments=0)"
        " -> *stacked: any, *final: any, *sums: any",
        f"      sequences = {sequence.describe()}",
        f"      sequences = {other.describe()}",
    )


def test_an_exception_inside_a_step_discards_it(sequence):
    program = sequence.block.program
    rnn = ol.rnn()
    with pytest.raises(KeyError), rnn.step():
        rnn.output(rnn.step_input(sequence))
        inner = ol.rnn()
        with inner.step():
            inner.output(inner.step_input(rnn.step_input(sequence)))
        inner()
        raise KeyError
    assert [(block.index, block.name) for block in program.blocks] == [(0, "main")]
    refused(rnn, ol.ProgramError, "rnn(): close it once, after its step block")
    with rnn.step():
        rnn.output(ol.op.square(rnn.step_input(sequence)))
    y = rnn()
    assert [block.index for block in program.blocks] == [0, 1]
    feed = {"xs": numpy.full((1, 3), 2.0, "float32")}
    assert run(ol.Program.from_bytes(program.to_bytes()), feed, [y.name])[0].tolist() == [[4.0, 4.0, 4.0]]


def test_parameters_of_a_step_belong_to_the_main_block(sequence):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.layer.fc(rnn.step_input(sequence), 2, name="inside"))
    rnn()
    program = sequence.block.program
    assert [var.path for var in program.parameters()] == ["main/inside.w", "main/inside.b"]


def test_a_step_writes_into_no_block_around_it(sequence):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.tanh(rnn.step_input(sequence)))
        refused(
            lambda: ol.layer.data("late", shape=[3]),
            ol.ProgramError,
            '"late": inputs are declared in the main block, not in main/rnn_0.body',
        )


# Files


def test_a_model_with_a_loop_is_saved_loaded_and_trained_on_bit_for_bit(tmp_path):
    with ol.Program(seed=4) as program:
        xs = ol.layer.data("xs", shape=["n", 3], batch="t")
        start = ol.layer.data("start", shape=[4])
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=start)
            both = ol.layer.concat([rnn.step_input(xs), rnn.previous_memory(h)], axis=1)
            rnn.update_memory(h, ol.layer.fc(both, 4, act="tanh"))
        rnn()
        cost = ol.layer.mean(ol.op.square(rnn.final_memory(h)))
        program.targets["cost"] = cost
        ol.optimizer.Adam().minimize(cost)
    scope = ol.init(program, ol.Scope())
    feed = {"xs": RANDOM.normal(size=(5, 2, 3)).astype("float32"), "start": numpy.zeros((2, 4), "float32")}
    executor = ol.Executor()
    for _ in range(2):
        executor.run(program, feed, scope=scope)
    ol.save_model(program, scope, tmp_path / "model.safetensors")
    model = ol.load_model(tmp_path / "model.safetensors")
    ours = [executor.run(program, feed, ["cost"], scope=scope)[0].tobytes() for _ in range(3)]
    theirs = [executor.run(model.program, feed, ["cost"], scope=model.scope)[0].tobytes() for _ in range(3)]
    assert ours == theirs
    assert len(set(ours)) == 3
    assert all(torch.equal(scope[name], model.scope[name]) for name in scope)

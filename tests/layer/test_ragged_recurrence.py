"""`ol.rnn` over ragged sequences, against the same step run by PyTorch over each sequence on its own."""

from types import SimpleNamespace

import numpy
import pytest
import torch
from block_operators import ragged_loop
from tolerances import AUTOGRAD, FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES

import oarlock as ol
from oarlock.op.control.recurrent_loop import recurrent

RANDOM = numpy.random.default_rng(17)
LENGTHS = [[2, 0, 3, 1], [0, 0, 0], [], [2, 2, 2], [4], [1, 1, 5, 0]]
EVERY_LENGTH = pytest.mark.parametrize("lengths", LENGTHS, ids=str)


def agree(actual, expected, tolerance=AUTOGRAD):
    assert actual.shape == tuple(expected.shape)
    numpy.testing.assert_allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1])


CHECKED, PLANNED = ol.Executor(check=True), ol.Executor()
"""For all runs, so that what is run again is prepared once."""


def run(program, feed, fetch):
    """By the interpreter, which checks every value against its declared type, and by the plan, which agrees."""
    values = CHECKED.run(program, feed, fetch, scope=ol.Scope())
    for value, planned in zip(values, PLANNED.run(program, feed, fetch, scope=ol.Scope()), strict=True):
        agree(planned, value)
    return values


# Steps, each written once: `f` has the operations, `v` the variables around; s, y, h and c are rows


def elman(f, v, s, y, h):
    h = f.tanh(f.linear(s, v.w) + f.linear(h, v.u))
    return h, h


def with_rows_of_outside(f, v, s, y, h):
    """c has a row for each sequence, and none of them is a memory that the user declared."""
    h = f.tanh(f.linear(s, v.w) * v.c + h * v.c)
    return h * v.c, h


def two_sequences_one_of_them_returned(f, v, s, y, h):
    return y, f.tanh(h * y)


def memory_before_the_step(f, v, s, y, h):
    return h, h * f.tanh(f.linear(s, v.w))


def while_inside(f, v, s, y, h):
    z = f.repeat(lambda z: f.tanh(z * v.c + y), f.linear(s, v.w) + h)
    return z, z + h


def ifelse_inside(f, v, s, y, h):
    z = f.rows(s, lambda: f.tanh(h) * v.c, lambda: f.linear(f.tanh(h), v.u))
    return z, z + y


STEPS = [elman, with_rows_of_outside, two_sequences_one_of_them_returned, memory_before_the_step, while_inside, ifelse_inside]
EVERY_STEP = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
BOTH_WAYS = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
NAMES = ("x", "y", "m", "c", "w", "u")


class Ours:
    tanh, linear, total = ol.op.tanh, ol.op.linear, ol.op.reduce_sum

    @staticmethod
    def repeat(trip, start):
        count = ol.op.full(shape=(), value=0, dtype="int64")
        loop = ol.while_loop(count < 3)
        with loop.block():
            loop.carry(start, trip(start))
            loop.carry(count, count + 1)
            loop.update_condition(count + 1 < 3)
        return loop()[0]

    @staticmethod
    def rows(s, true, false):
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(true())
        with ie.false_block():
            ie.output(false())
        return ie(ol.op.reduce_sum(s, axis=1) > 0)


class Theirs:
    tanh, linear, total = torch.tanh, torch.matmul, torch.sum

    @staticmethod
    def repeat(trip, value):
        for _ in range(3):
            value = trip(value)
        return value

    @staticmethod
    def rows(s, true, false):
        return true() if s.sum() > 0 else false()


def weigh(f, values):
    total = None
    for number, value in enumerate(values):
        part = f.total(f.tanh(value * (number + 0.5))) + f.total(value) * 0.1
        total = part if total is None else total + part
    return total


class Model:
    """A step as a program that takes any lengths, and its derivatives."""

    def __init__(self, step, reverse):
        self.step, self.reverse = step, reverse
        with ol.Program() as self.program:
            x = ol.layer.data("x", [2], dtype="float64", ragged=1)
            rows = {name: ol.layer.data(name, [3], dtype="float64") for name in ("m", "c")}
            y = ol.layer.data("y", [3], dtype="float64", batch="x.t")
            weights = {name: ol.layer.data(name, shape, dtype="float64", batch=None) for name, shape in (("w", [2, 3]), ("u", [3, 3]))}
            v = SimpleNamespace(x=x, y=y, **rows, **weights)
            rnn = ol.rnn(reverse=reverse)
            with rnn.step():
                h = rnn.memory(init=v.m)
                output, following = step(Ours, v, rnn.step_input(x), rnn.step_input(y), rnn.previous_memory(h))
                rnn.update_memory(h, following)
                rnn.output(output)
            self.outputs = [rnn(), rnn.final_memory(h)]
            self.cost = weigh(Ours, self.outputs)
            self.wanted = [vars(v)[name] for name in NAMES]
            self.first = ol.gradients([self.cost], self.wanted)
            self.second = ol.gradients([weigh(Ours, [gradient for gradient in self.first if gradient is not None])], self.wanted)

    def arrays(self, lengths):
        total, n = sum(lengths), len(lengths)
        shapes = {"x": (total, 2), "y": (total, 3), "m": (n, 3), "c": (n, 3), "w": (2, 3), "u": (3, 3)}
        found = {name: RANDOM.uniform(-0.9, 0.9, size=shape) for name, shape in shapes.items()}
        return found | {"x.splits": numpy.cumsum([0, *lengths])}

    def theirs(self, arrays):
        """Outputs, first and second derivatives, sequence by sequence."""
        tensors = {name: torch.tensor(arrays[name], requires_grad=True) for name in NAMES}
        v = SimpleNamespace(**tensors)
        outputs = [torch.zeros(1, 3)] * len(v.x)
        finals = []
        splits = arrays["x.splits"]
        for row in range(len(splits) - 1):
            h = v.m[row : row + 1]
            inside = SimpleNamespace(c=v.c[row : row + 1], w=v.w, u=v.u)
            steps = range(splits[row], splits[row + 1])
            for at in reversed(steps) if self.reverse else steps:
                outputs[at], h = self.step(Theirs, inside, v.x[at : at + 1], v.y[at : at + 1], h)
            finals.append(h)
        empty = torch.zeros(0, 3, dtype=torch.float64)
        computed = [torch.cat([empty, *outputs]), torch.cat([empty, *finals])]
        zero = sum((tensor * 0).sum() for tensor in tensors.values())  # so that each gradient exists
        wanted = list(tensors.values())
        first = torch.autograd.grad(weigh(Theirs, computed) + zero, wanted, create_graph=True)
        there = [gradient for gradient, ours in zip(first, self.first, strict=True) if ours is not None]
        second = torch.autograd.grad(weigh(Theirs, there) + zero, wanted)
        return [[value.detach() for value in values] for values in (computed, first, second)]


MODELS: dict = {}


def model_of(step, reverse=False) -> Model:
    if (step, reverse) not in MODELS:
        MODELS[step, reverse] = Model(step, reverse)
    return MODELS[step, reverse]


@EVERY_STEP
@BOTH_WAYS
@EVERY_LENGTH
def test_a_ragged_loop_and_its_derivatives_are_those_of_each_sequence_on_its_own(step, reverse, lengths):
    model = model_of(step, reverse)
    arrays = model.arrays(lengths)
    for ours, theirs in zip((model.outputs, model.first, model.second), model.theirs(arrays), strict=True):
        values = iter(run(model.program, arrays, [var for var in ours if var is not None]))
        for var, hoped in zip(ours, theirs, strict=True):
            agree(numpy.zeros(hoped.shape) if var is None else next(values), hoped)


@EVERY_STEP
def test_the_gradient_of_a_ragged_loop_agrees_with_finite_differences(step):
    model = model_of(step)
    arrays = model.arrays([2, 0, 3, 1])
    for var, gradient in zip(model.wanted, model.first, strict=True):
        direction = RANDOM.normal(size=arrays[var.name].shape)
        slope = 0.0 if gradient is None else (run(model.program, arrays, [gradient])[0] * direction).sum()
        above, below = (
            run(model.program, arrays | {var.name: arrays[var.name] + sign * FINITE_DIFFERENCE_STEP * direction}, [model.cost])[0]
            for sign in (1, -1)
        )
        agree((above - below) / (2 * FINITE_DIFFERENCE_STEP), numpy.asarray(slope), FINITE_DIFFERENCES)


@EVERY_STEP
def test_a_ragged_loop_that_is_written_and_read_runs_bit_for_bit_as_before(step):
    model = model_of(step, True)
    arrays = model.arrays([2, 0, 3])
    fetch = [var.name for var in (*model.outputs, *model.first, *model.second) if var is not None]
    read = ol.Program.from_bytes(model.program.to_bytes())
    assert [value.tobytes() for value in run(model.program, arrays, fetch)] == [value.tobytes() for value in run(read, arrays, fetch)]
    text = model.program.to_text(source=False)
    assert ol.parse_program(text).to_text(source=False) == text


# What a step is


@pytest.fixture
def words():
    with ol.Program():
        yield ol.layer.data("words", [2], dtype="float64", ragged=1)


def test_no_padding_is_computed(words):
    """Each step has the rows of the sequences that still have one, and of all steps together there are as many as elements."""
    program = words.block.program
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.tanh(rnn.step_input(words), name="z"))
    rnn()
    feed = {"words": ol.Ragged.from_lengths(numpy.ones((9, 2)), [1, 5, 0, 3])}
    with ol.Executor().run(program, feed, scope=ol.Scope(), keep_scopes=True)[1] as scopes:
        rows = [scopes[f"main/rnn_0/{step}"]["z"].shape[0] for step in range(5)]
        assert "main/rnn_0/5" not in scopes
    assert rows == [3, 2, 2, 1, 1]


def test_what_a_ragged_step_returns_is_ragged_by_the_same_splits_or_stacked_step_by_step(words):
    rnn = ol.rnn()
    with rnn.step():
        word = rnn.step_input(words)
        assert word.type_text == "float64[n, 2]"
        rnn.output(word * 2.0, ol.op.reduce_sum(word, axis=0))
    doubled, sums = rnn()
    assert doubled.type_text == "float64[words.t, 2]"
    assert words.block.splits_of(doubled.shape[0]).name == "words.splits"
    assert word.type_text == "float64[rnn_0.rows, 2]"
    feed = {"words": [[[1.0, 2.0], [3.0, 4.0]], [], [[5.0, 6.0]]]}
    last = ol.layer.sequence_pool(doubled, "last")
    values = run(words.block.program, feed, [doubled, sums, last])
    assert [value.tolist() for value in values] == [
        [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]],
        [[6.0, 8.0], [3.0, 4.0]],
        [[6.0, 8.0], [0.0, 0.0], [10.0, 12.0]],
    ]


def test_a_memory_without_rows_is_one_for_all_sequences(words):
    start = ol.op.full(shape=(), value=0, dtype="int64")
    rnn = ol.rnn()
    with rnn.step():
        rnn.step_input(words)
        count = rnn.memory(init=start)
        rnn.update_memory(count, rnn.previous_memory(count) + 1)
        rnn.output(rnn.previous_memory(count))
    counts = rnn()
    feed = {"words": ol.Ragged.from_lengths(numpy.ones((5, 2)), [1, 4])}
    values = run(words.block.program, feed, [counts, rnn.final_memory(count)])
    assert [value.tolist() for value in values] == [[0, 1, 2, 3], 4]


def test_rows_of_rows_are_stepped_through_level_by_level():
    with ol.Program() as program:
        documents = ol.layer.data("documents", [1], dtype="float64", ragged=2)
        start = ol.op.full_like(ol.layer.sequence_pool(documents, "sum"), value=0.0, dtype="float64")
        inner = ol.rnn()
        with inner.step():
            total = inner.memory(init=start)
            inner.update_memory(total, inner.previous_memory(total) + inner.step_input(documents))
        inner()
        sentences = inner.final_memory(total)
        outer = ol.rnn()
        with outer.step():
            outer.output(ol.op.square(outer.step_input(sentences)))
        squares = outer()
    assert (sentences.type_text, squares.type_text) == ("float64[documents.s1, 1]", "float64[documents.s1, 1]")
    feed = {"documents": [[[[1.0], [2.0]], []], [], [[[5.0]]]]}
    assert run(program, feed, [squares])[0].tolist() == [[9.0], [0.0], [25.0]]


def test_a_ragged_loop_inside_a_loop_reads_the_steps_of_both():
    """Pages of scales, each of which weighs every word of ragged sequences outside."""
    with ol.Program() as program:
        words = ol.layer.data("words", [2], dtype="float64", ragged=1)
        start = ol.layer.data("start", [2], dtype="float64")
        scales = ol.layer.data("scales", [2], dtype="float64", batch="t")
        pages = ol.rnn()
        with pages.step():
            scale = pages.step_input(scales)
            rnn = ol.rnn()
            with rnn.step():
                h = rnn.memory(init=start)
                rnn.update_memory(h, ol.op.tanh(rnn.step_input(words) * scale + rnn.previous_memory(h)))
            rnn()
            pages.output(rnn.final_memory(h))
        finals = pages()
        found = ol.gradients([ol.op.reduce_sum(finals)], [words, start, scales])
    lengths = [2, 0, 1]
    arrays = {"words": RANDOM.normal(size=(3, 2)), "start": RANDOM.normal(size=(3, 2)), "scales": RANDOM.normal(size=(4, 2))}
    given = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    rows = []
    for scale in given["scales"]:
        at = 0
        for row, length in enumerate(lengths):
            h = given["start"][row]
            for _ in range(length):
                h = torch.tanh(given["words"][at] * scale + h)
                at += 1
            rows.append(h)
    hoped = torch.stack(rows).reshape(4, 3, 2)
    slopes = torch.autograd.grad(hoped.sum(), list(given.values()))
    values = run(program, arrays | {"words.splits": numpy.cumsum([0, *lengths])}, [finals, *found])
    for actual, expected in zip(values, [hoped.detach(), *slopes], strict=True):
        agree(actual, expected)


def test_a_model_over_ragged_sequences_is_trained():
    with ol.Program(seed=1):
        words = ol.layer.data("words", [1], ragged=1)
        label = ol.layer.data("label", [1])
        start = label * 0.0
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=start)
            rnn.update_memory(h, ol.layer.fc(rnn.step_input(words), 1, bias=False) + ol.layer.fc(rnn.previous_memory(h), 1, bias=False))
        rnn()
        cost = ol.layer.mse(rnn.final_memory(h), label)
    lists = [[[float(value)] for value in row] for row in ([1, 2], [3], [], [1, 1, 1])]
    data = {"words": lists, "label": numpy.array([[3.0], [3.0], [0.0], [3.0]], "float32")}
    result = ol.train(cost, data, optimizer=ol.optimizer.Adam(0.05), epochs=400, progress=False)
    assert result.history[-1].training["loss"] < 1e-3  # the sum of the words


# What is refused


def refused(call, error, message, *rest):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).splitlines()[0] == message
    for line in rest:
        assert line in str(caught.value)
    return caught.value


def test_sequences_of_one_loop_are_cut_alike(words):
    other = ol.layer.data("others", [2], dtype="float64", ragged=1)
    dense = ol.layer.data("dense", [2], dtype="float64", batch="t")
    for first, second, message in (
        (words, other, '"others" has the row splits "others.splits", but "words" has the row splits "words.splits"'),
        (words, dense, '"dense" is not ragged, but "words" has the row splits "words.splits"'),
        (dense, words, '"words" has the row splits "words.splits", but "dense" is not ragged'),
    ):
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(rnn.step_input(first))
            refused(lambda rnn=rnn, second=second: rnn.step_input(second), ol.ShapeError, f"rnn.step_input: {message}")
        rnn()


def test_the_number_of_rows_has_a_name():
    with ol.Program() as program:
        splits = ol.layer.data("splits", [4], dtype="int64", batch=None)
        splits.row_splits_of = "t"
        x = ol.layer.data("x", [2], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            refused(
                lambda: rnn.step_input(x),
                ol.ShapeError,
                'rnn.step_input: "x" has 3 rows, but a ragged loop needs a symbolic number of rows',
                "ol.layer.data(",
            )
            rnn.output(ol.op.full(shape=(), value=0.0))
        refused(rnn, ol.ProgramError, "rnn: there is no sequence to step through")
    assert len(program.blocks) == 1


def test_a_step_that_mixes_the_rows_that_go_on_with_all_of_them_is_refused_and_taken_back(words):
    """`ys` has the rows in its second dimension, where a step cannot be told which of them go on."""
    ys = ol.layer.data("ys", ["n"], dtype="float64", batch="k")
    before = words.block.program.to_bytes()
    rnn = ol.rnn()
    with rnn.step():
        word = rnn.step_input(words)
        rnn.output(ol.op.linear(ys, word))
    error = refused(
        rnn,
        ol.ShapeError,
        "rnn: main/rnn_0.body, op 0 (linear): dimension k is n in x but rnn_0.rows in w",
        "a step sees only the rows that still have a step of variables with a row for each of the n sequences",
    )
    assert error.location.text == "rnn.output(ol.op.linear(ys, word))"
    assert words.block.program.to_bytes() == before


def test_what_has_another_number_of_rows_in_each_step_is_not_stacked():
    with ol.Program():
        xs = ol.layer.data("xs", ["n"], dtype="float64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            x = rnn.step_input(xs)
            some = ol.op.gather(x, ol.op.nonzero(x > 0.0))
            refused(
                lambda: rnn.output(some),
                ol.ShapeError,
                f'rnn.output: "{some.name}" has {some.shape[0]} rows, which differ between iterations, so they cannot be stacked',
            )
            rnn.output(ol.op.reduce_sum(some))
        rnn()


# The operator itself


def raw(rows="n"):
    """A ragged loop over splits that nothing vouches for, and what feeds it."""
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64", batch="t")
        splits = ol.layer.data("splits", [f"{rows}+1"], dtype="int64", batch=None)
        y = ragged_loop("loop", x, splits, lambda step: ol.op.tanh(step))
    return program, y


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([1, 4], "recurrent: row splits of 4 elements must begin with 0, never decrease and end at 4, unlike [1, 4]"),
        ([0, 3, 2, 4], "recurrent: row splits of 4 elements must begin with 0, never decrease and end at 4, unlike [0, 3, 2, 4]"),
        ([0, 2], "recurrent: row splits of 4 elements must begin with 0, never decrease and end at 4, unlike [0, 2]"),
        ([0, 2, 5], "recurrent: row splits of 4 elements must begin with 0, never decrease and end at 4, unlike [0, 2, 5]"),
        ([0], "recurrent: row splits of 4 elements must begin with 0, never decrease and end at 4, unlike [0]"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["interpreter", "plan"])
def test_row_splits_that_make_no_sense_are_refused_when_the_loop_runs(splits, message, check):
    program, y = raw()
    feed = {"x": numpy.ones((4, 2)), "splits": numpy.array(splits)}
    with pytest.raises(ol.KernelError) as caught:
        ol.Executor(check=check).run(program, feed, [y], scope=ol.Scope())
    assert caught.value.message == message
    assert caught.value.op == "recurrent"


def body_of(program, *types):
    block = program.new_block("loop.body", program.main)
    block.inputs = [block.new_var(f"given_{number}", ol.DType.FLOAT64, shape) for number, shape in enumerate(types)]
    return block


@pytest.mark.parametrize(
    ("inside", "after", "message"),
    [
        (
            ((2,), ("m", 3)),
            1,
            "the first input of the body of a ragged loop must begin with a size symbol of its own: the number of active rows",
        ),
        ((("m", 5), ("m", 3)), 1, 'the body takes "given_0" as float64[m, 5], but receives float64[m, 2]'),
        ((("m", 2), ("m", 4)), 1, 'the body takes "given_1" as float64[m, 4], but receives float64[m, 3]'),
        ((("m", 2), ("n", 3)), 0, "memory 0 begins as float64[n, 3] but continues as float64[m, 2]"),
        ((("m", 2), ("m", 3)), 0, "memory 0 begins as float64[m, 3] but continues as float64[m, 2]"),
        ((("m", 2),), 0, "the body takes 1 values, but receives 2"),
    ],
)
def test_a_body_whose_types_do_not_follow_from_the_splits_is_refused(inside, after, message):
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64", ragged=1)
        m = ol.layer.data("start", [3], dtype="float64")
        body = body_of(program, *inside)
        body.outputs = [body.inputs[after]]
        with pytest.raises(ol.ShapeError) as caught:
            recurrent([x], [m], [], program.main.var("x.splits"), body=body)
    assert caught.value.message == f"recurrent: {message}"


def test_a_memory_of_another_number_of_rows_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64", ragged=1)
        m = ol.layer.data("start", [2], dtype="float64", batch="k")
        body = body_of(program, ("m", 2), ("m", 2))
        body.outputs = [body.inputs[1]]
        with pytest.raises(ol.ShapeError) as caught:
            recurrent([x], [m], [], program.main.var("x.splits"), body=body)
    assert caught.value.message == 'recurrent: the memory "given_1" begins as float64[k, 2], but the sequences have n rows'


def test_a_read_program_with_a_body_of_other_types_is_refused():
    model = model_of(elman)
    text = model.program.to_text(source=False)
    broken = text.replace("rnn_0.rows, 3] = tanh", "rnn_0.rows, 4] = tanh", 1)
    assert broken != text
    with pytest.raises(ol.VerifyError) as caught:
        ol.parse_program(broken)
    assert (
        caught.value.message == "main, op 0 (recurrent): memory 0 begins as float64[rnn_0.rows, 3] but continues as float64[rnn_0.rows, 4]"
    )

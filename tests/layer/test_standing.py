"""In the step of a loop, the sequences that it steps through stand for their step."""

import numpy as np
import pytest
import torch

import oarlock as ol

LISTING = """
x = sequence([10, 20, 30]) # shape=[None, 1]
m = var(0) # shape=[1]
W = var(0.314, param=true) # shape=[1]
U = var(0.375, param=true) # shape=[1]

rnn = pd.rnn()
with rnn.step():
  h = rnn.memory(init = m)
  h_prev = rnn.previous_memory(h)
  a = layer.fc(W, x)
  b = layer.fc(U, h_prev)
  s = pd.add(a, b)
  act = pd.sigmoid(s)
  rnn.update_memory(h, act)
  rnn.output(a, b)
o1, o2 = rnn()
"""
EXECUTORS = {
    "plan": {},
    "no passes": {"passes": ()},
    "interpreter": {"interpret": True},
    "check": {"check": True},
}


def names_of_the_listing():
    return {"pd": ol, "sequence": ol.sequence, "var": ol.var, "layer": ol.layer, "true": True}


def computed(program, fetch, feed=None, **options):
    scope = ol.init(program, ol.Scope())
    return ol.Executor(**options).run(program, feed or {}, fetch, scope=scope)


@pytest.mark.mission("B17", "B21", "B23")
@pytest.mark.parametrize("options", EXECUTORS.values(), ids=EXECUTORS)
def test_the_listing_of_the_block_document_runs_as_it_is_written(options):
    names = names_of_the_listing()
    with ol.Program() as program:
        exec(LISTING, names)
    a, b, last = computed(program, [names["o1"], names["o2"], names["rnn"].final_memory(names["h"])], **options)
    np.testing.assert_allclose(a, [[3.14], [6.28], [9.42]], rtol=1e-6)
    np.testing.assert_allclose(b, [[0.0], [0.359442], [0.374510]], rtol=2e-6)
    np.testing.assert_allclose(last, [0.999944], rtol=1e-6)


@pytest.mark.mission("B23")
@pytest.mark.parametrize("options", EXECUTORS.values(), ids=EXECUTORS)
def test_the_gradients_of_the_listing_are_those_that_were_computed_by_hand(options):
    names = names_of_the_listing()
    listing = LISTING.replace("[10, 20, 30]", "[1, 2, 3]").replace("rnn.output(a, b)", "rnn.output(act)").replace("o1, o2", "every")
    with ol.Program() as program:
        exec(listing, names)
        cost = ol.op.reduce_sum(names["every"])
        gradients = ol.gradients([cost], [names[name] for name in "WUmx"])
    dw, du, dm, dx = computed(program, gradients, **options)
    np.testing.assert_allclose(dw, [1.245319], rtol=2e-6)
    np.testing.assert_allclose(du, [0.253704], rtol=2e-6)
    np.testing.assert_allclose(dm, [0.099168], rtol=5e-6)
    np.testing.assert_allclose(dx.ravel(), [0.083037, 0.070402, 0.055730], rtol=1e-5)


def recurrent(read, shape=(2,), **declared):
    """A program that adds up, and returns, what `read` makes of a loop and of the sequence `x`; and what it returns."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=list(shape), **{"batch": "t", **declared})
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(read(rnn, x))
        return program, rnn()


def text_of(read, **declared):
    return recurrent(read, **declared)[0].to_text(source=False)


READS = {
    "an operator": lambda x: ol.op.tanh(x),
    "x * 2": lambda x: x * 2.0,
    "1 - x": lambda x: 1.0 - x,
    "x > 1": lambda x: x > 1.0,
    "add_scalar": lambda x: ol.layer.add_scalar(x, 1.0),
    "larger_than": lambda x: ol.larger_than(x, 1.0),
    "fc": lambda x: ol.layer.fc(x, 3),
    "fc of a list": lambda x: ol.layer.fc(ol.layer.concat([x, x], axis=-1), 3),
    "layer_norm": lambda x: ol.layer.layer_norm(x),
    "output": lambda x: x,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("declared", [{}, {"batch": "steps"}, {"ragged": 1, "batch": "n"}], ids=["t", "steps", "ragged"])
def test_what_is_written_with_the_sequence_is_what_is_written_with_its_step(read, declared):
    def by_name(rnn, x):
        return read(rnn.step_input(x))

    def by_itself(rnn, x):
        if declared.get("batch") == "steps":
            rnn.step_input(x)  # a size of any other name is not known to count steps
        return read(x)

    assert text_of(by_itself, **declared) == text_of(by_name, **declared)


@pytest.mark.parametrize(
    ("shape", "read"),
    [
        ((5, 3, 4, 4), lambda x: ol.layer.conv2d(x, filters=2, size=3)),
        ((5, 3, 4, 4), lambda x: ol.layer.global_pool2d(x)),
        ((5, 3, 4), lambda x: ol.layer.attention(x, x, x)),
        ((5, 3, 4), lambda x: ol.layer.lstm(x, 2)[1]),
        ((3, 4), lambda x: x @ ol.layer.create_parameter([4, 2])),
    ],
    ids=["conv2d", "global_pool2d", "attention", "lstm", "matmul"],
)
def test_layers_that_look_at_the_shape_see_that_of_the_step(shape, read):
    assert text_of(lambda _, x: read(x), shape=shape) == text_of(lambda rnn, x: read(rnn.step_input(x)), shape=shape)


def test_a_variable_in_an_attribute_is_its_step_too():
    with ol.Program() as program:
        rates = ol.sequence([1.0, 2.0, 3.0])
        start = ol.layer.data("start", shape=[1], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            rnn.update_memory(state, rnn.previous_memory(state) * ol.op.reshape(rates, shape=[1]))
            rnn.output(rnn.previous_memory(state))
        stacked = rnn()
    assert computed(program, [stacked], {"start": np.ones(1, "float32")})[0].ravel().tolist() == [1.0, 1.0, 2.0]


def test_every_variable_with_as_many_steps_by_name_is_stepped_and_none_by_number():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        y = ol.op.square(x)  # [t, 2]
        table = ol.layer.data("table", shape=[3, 2], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(x + y, ol.op.reduce_sum(table, axis=0) + x)
        first, second = rnn()
    feed = {"x": np.arange(6.0, dtype="float32").reshape(3, 2), "table": np.ones((3, 2), "float32")}
    for options in EXECUTORS.values():
        one, other = computed(program, [first, second], feed, **options)
        np.testing.assert_array_equal(one, feed["x"] + feed["x"] ** 2)
        np.testing.assert_array_equal(other, feed["x"] + 3.0)


def test_a_sequence_that_is_asked_for_whole_is_all_of_it_in_every_step_and_so_is_its_gradient():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            every = rnn.whole(x)
            weights = ol.layer.softmax(ol.op.reduce_sum(every * x, axis=1))  # float64[t], the step times each
            rnn.output(ol.op.reduce_sum(every * ol.op.reshape(weights, shape=(-1, 1)), axis=0))
        attended = rnn()
        (dx,) = ol.gradients([ol.op.reduce_sum(ol.op.square(attended))], [x])
    assert "x.whole" not in program.to_text(), "the op captures the variable itself"
    assert program.main.var("rnn_0.stacked.0").op.inputs["free"] == (x,)
    given = np.random.default_rng(0).normal(size=(4, 2))
    tensor = torch.tensor(given, requires_grad=True)
    expected = torch.softmax(tensor @ tensor.T, dim=1) @ tensor
    (gradient,) = torch.autograd.grad(expected.square().sum(), [tensor])
    for options in EXECUTORS.values():
        values = computed(program, [attended, dx], {"x": given}, **options)
        np.testing.assert_allclose(values[0], expected.detach(), rtol=1e-12)
        np.testing.assert_allclose(values[1], gradient, rtol=1e-10)


def test_a_block_in_the_step_sees_the_step_and_a_loop_in_it_steps_through_that():
    with ol.Program() as program:
        docs = ol.layer.data("docs", shape=["w", 2], batch="t", dtype="float64")
        positive = ol.layer.data("positive", shape=[], batch="t", dtype="bool")
        zero = ol.layer.data("zero", shape=[2], batch=None, dtype="float64")
        outer = ol.rnn()
        with outer.step():
            inner = ol.rnn()
            with inner.step():
                inner.step_input(docs)  # a document, which the outer loop steps to
                total = inner.memory(init=zero)
                inner.update_memory(total, inner.previous_memory(total) * 0.5 + docs)
                inner.output(docs)
            same = inner()
            sign = ol.cond(positive, lambda: ol.op.reduce_sum(docs), lambda: -ol.op.reduce_sum(docs))
            outer.output(inner.final_memory(total), ol.op.reduce_sum(same, axis=0), sign)
        last, sums, signs = outer()
        (gradient,) = ol.gradients([ol.op.reduce_sum(ol.op.square(last)) + ol.op.reduce_sum(signs)], [docs])
    feed = {"docs": np.random.default_rng(1).normal(size=(3, 4, 2)), "positive": np.array([True, False, True]), "zero": np.zeros(2)}
    tensor = torch.tensor(feed["docs"], requires_grad=True)
    decay = torch.tensor([0.125, 0.25, 0.5, 1.0], dtype=torch.float64)
    lasts = (tensor * decay[:, None]).sum(1)
    by_sign = tensor.sum((1, 2)) * torch.tensor([1.0, -1.0, 1.0])
    (expected,) = torch.autograd.grad(lasts.square().sum() + by_sign.sum(), [tensor])
    for options in EXECUTORS.values():
        values = computed(program, [last, sums, signs, gradient], feed, **options)
        for value, wanted in zip(values, [lasts, tensor.sum(1), by_sign, expected], strict=True):
            np.testing.assert_allclose(value, wanted.detach(), rtol=1e-12)


def test_ragged_sequences_are_read_by_themselves_and_their_rows_may_be_wanted_whole():
    def program_of(whole):
        with ol.Program() as program:
            words = ol.layer.data("words", shape=[2], ragged=1, dtype="float64")
            weight = ol.layer.data("weight", shape=[2], dtype="float64")  # a row for each sequence
            start = weight * 0.0
            rnn = ol.rnn()
            with rnn.step():
                state = rnn.memory(init=start)
                step = rnn.step_input(words) if whole else words
                seen = ol.op.reduce_sum(rnn.whole(weight), axis=0) if whole else weight
                after = rnn.previous_memory(state) + step * seen
                rnn.update_memory(state, after)
                rnn.output(after)
            rnn()
            final = rnn.final_memory(state)
            return program, [final, *ol.gradients([ol.op.reduce_sum(ol.op.square(final))], [words, weight])]

    lengths, generator = [3, 0, 1, 2], np.random.default_rng(2)
    rows = [generator.normal(size=(length, 2)) for length in lengths]
    weight = generator.normal(size=(4, 2))
    for whole in (False, True):
        program, fetch = program_of(whole)
        parts = torch.tensor(np.concatenate(rows), requires_grad=True)
        weights = torch.tensor(weight, requires_grad=True)
        factor = weights.sum(0).expand(4, 2) if whole else weights
        final = torch.stack([part.sum(0) * row for part, row in zip(parts.split(lengths), factor, strict=True)])
        gradients = torch.autograd.grad(final.square().sum(), [parts, weights])
        feed = {"words": ol.Ragged(np.concatenate(rows), (np.cumsum([0, *lengths]),)), "weight": weight}
        for options in EXECUTORS.values():
            for value, wanted in zip(computed(program, fetch, feed, **options), [final, *gradients], strict=True):
                np.testing.assert_allclose(value, wanted.detach(), rtol=1e-12, err_msg=f"{whole} {options}")


def test_what_a_memory_begins_as_is_what_it_is_outside():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=x)  # the whole sequence, before the first step
            rnn.update_memory(state, rnn.previous_memory(state) + x)
        rnn()
        last = rnn.final_memory(state)
    assert last.shape == ("t", 1)
    value = np.array([[1.0], [2.0], [4.0]], "float32")
    assert computed(program, [last], {"x": value})[0].ravel().tolist() == [8.0, 9.0, 11.0]


def test_outside_the_step_a_sequence_is_itself():
    with ol.Program():
        x = ol.sequence([1, 2, 3])
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(x))
        assert ol.op.tanh(x).shape == ("t", 1)
        assert rnn().shape == ("t", 1)
        with pytest.raises(ol.ProgramError, match="inside `with rnn.step"):
            rnn.whole(x)


def test_what_was_read_whole_before_its_loop_was_known_is_refused():
    with ol.Program() as program:
        states = ol.layer.data("states", shape=[2], batch="s")
        words = ol.layer.data("words", shape=[2], batch="s")
        rnn = ol.rnn()
        with pytest.raises(ol.ShapeError) as caught, rnn.step():
            ol.cond(ol.op.reduce_sum(states) > 0.0, lambda: ol.op.reduce_sum(states), lambda: ol.op.reduce_sum(words))
            rnn.step_input(words)
    assert caught.value.message == ('rnn.step_input: "states" was read whole in this step before the loop was known to step through words')
    assert caught.value.hint == "call rnn.step_input(words) first, and rnn.whole(states) for all of it"
    assert len(program.blocks) == 1


def test_a_sequence_that_was_meant_whole_beside_one_of_other_steps_is_refused_with_what_to_write():
    with ol.Program():
        source = ol.layer.data("source", shape=[2], ragged=1)
        target = ol.layer.data("target", shape=[2], ragged=1)
        rnn = ol.rnn()
        with pytest.raises(ol.ShapeError) as caught, rnn.step():
            ol.op.reduce_sum(source)
            rnn.step_input(target)
    assert caught.value.hint == "if source is meant as a whole, use rnn.whole(source)"


def test_a_whole_of_rows_that_are_not_yet_known_to_be_rows_is_refused():
    with ol.Program():
        words = ol.layer.data("words", shape=[2], ragged=1)
        weight = ol.layer.data("weight", shape=[2])
        rnn = ol.rnn()
        with rnn.step():
            total = ol.op.reduce_sum(rnn.whole(weight), axis=0)
            rnn.output(rnn.step_input(words) + total)
        with pytest.raises(ol.ShapeError) as caught:
            rnn()
    assert caught.value.message == 'rnn.whole: "weight" was used before the loop was known to be ragged, with n rows'


def test_a_block_that_was_taken_back_takes_back_what_it_found():
    with ol.Program() as program:
        x = ol.sequence([1, 2, 3])
        rnn = ol.rnn()
        with rnn.step():
            with pytest.raises(ZeroDivisionError):
                ol.cond(ol.op.reduce_sum(rnn.whole(x)) > 0.0, lambda: ol.op.tanh(x) / (1 // 0), lambda: x)
            rnn.output(x + ol.op.reduce_sum(rnn.whole(x)))
        every = rnn()
    assert computed(program, [every])[0].ravel().tolist() == [7.0, 8.0, 9.0]

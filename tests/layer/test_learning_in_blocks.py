"""Parameters, dropout and training inside branches and loops."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD
from twins import agree

import oarlock as ol

RANDOM = numpy.random.default_rng(31)
X = RANDOM.normal(size=(8, 4)).astype("float32")
Y = (X[:, :1] * 2 - X[:, 1:2]).astype("float32")


def layers(x, trips):
    """A network that branches by rows, chooses for all, and repeats; each block makes parameters of its own."""
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(ol.layer.fc(x, 4, act="tanh", name="yes"))
    with ie.false_block():
        ie.output(ol.layer.fc(x, 4, act="tanh", name="no"))
    h = ie(ol.op.slice(x, axis=1, start=0, stop=1) > 0.0)
    loop = ol.while_loop(trips > 0)
    with loop.block():
        loop.carry(h, ol.layer.fc(h, 4, act="tanh", name="again"))
        loop.carry(trips, trips - 1)
        loop.update_condition(trips - 1 > 0)
    h, _ = loop()
    return ol.cond(ol.op.mean(x) > -9.0, lambda: ol.layer.fc(h, 1, name="usual"), lambda: ol.layer.fc(h, 1, name="rare"))


def model(optimizer=None):
    with ol.Program(seed=6) as program:
        x, y = ol.layer.data("x", shape=[4]), ol.layer.data("y", shape=[1])
        trips = ol.op.full(shape=(), value=3, dtype="int64")
        cost = ol.layer.mse(layers(x, trips), y)
        program.targets["cost"] = cost
        if optimizer is not None:
            optimizer.minimize(cost)
    return program, cost


NAMES = [f"{name}.{kind}" for name in ("yes", "no", "again", "usual", "rare") for kind in ("w", "b")]


def test_parameters_that_a_block_makes_belong_to_the_main_block_and_have_one_gradient_each():
    """`again` is used in each of three trips: its gradient is the sum. `rare` is not used: zeros."""
    program, cost = model()
    assert [var.path for var in program.parameters()] == [f"main/{name}" for name in NAMES]
    with program:
        pairs = ol.append_backward(cost)
    assert [parameter.name for parameter, _ in pairs] == NAMES
    scope = ol.init(program, ol.Scope())
    values = ol.Executor().run(program, {"x": X, "y": Y}, [gradient for _, gradient in pairs], scope=scope)
    t = {name: scope[name].clone().double().requires_grad_() for name in NAMES}
    x = torch.tensor(X).double()
    h = torch.where(x[:, :1] > 0, (x @ t["yes.w"] + t["yes.b"]).tanh(), (x @ t["no.w"] + t["no.b"]).tanh())
    for _ in range(3):
        h = (h @ t["again.w"] + t["again.b"]).tanh()
    ((h @ t["usual.w"] + t["usual.b"] - torch.tensor(Y)) ** 2).mean().backward()
    for name, value in zip(NAMES, values, strict=True):
        numpy.testing.assert_allclose(value, 0.0 if t[name].grad is None else t[name].grad, rtol=1e-4, atol=1e-6)
        assert bool(value.any()) == (not name.startswith("rare"))


@pytest.mark.parametrize(
    "optimizer", [ol.optimizer.SGD(0.1), ol.optimizer.Momentum(0.05), ol.optimizer.Adam(0.02)], ids=lambda each: type(each).__name__
)
def test_a_few_steps_lower_the_cost_of_a_network_of_blocks(optimizer):
    program, _ = model(optimizer)
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].numpy().copy() for name in NAMES}
    executor = ol.Executor()
    costs = [float(executor.run(program, {"x": X, "y": Y}, ["cost"], scope=scope)[0]) for _ in range(30)]
    assert costs[-1] < 0.5 * costs[0]
    for name in NAMES:
        assert numpy.array_equal(scope[name].numpy(), before[name]) == name.startswith("rare")


def test_a_network_of_blocks_trains_is_saved_and_infers(tmp_path):
    with ol.Program(seed=6):
        x, y = ol.layer.data("x", shape=[4]), ol.layer.data("y", shape=[1])
        predict = layers(x, ol.op.full(shape=(), value=3, dtype="int64"))
        cost = ol.layer.mse(predict, y)
    result = ol.train(cost, {"x": X, "y": Y}, optimizer=ol.optimizer.Adam(0.02), epochs=20, batch_size=4, progress=False)
    ol.save_model(predict, result, tmp_path / "model.safetensors")
    loaded = ol.load_model(tmp_path / "model.safetensors")
    inferred = ol.infer(loaded, {"x": X})
    (mine,) = ol.Executor().run(predict.block.program, {"x": X}, [predict], scope=result.parameters)
    assert numpy.asarray(inferred).tobytes() == mine.tobytes()
    assert float(((mine - Y) ** 2).mean()) < float((Y**2).mean())


# Dropout


def dropped(kind):
    """Ones, dropped in a block, and the gradient, which is the mask; of a loop the stack over four trips."""
    with ol.Program(seed=2) as program:
        x = ol.layer.data("x", shape=[50])
        if kind == "while":
            count = ol.op.full(shape=(), value=0, dtype="int64")
            loop = ol.while_loop(count < 4)
            with loop.block():
                loop.output(ol.layer.dropout(x, rate=0.5))
                loop.carry(count, count + 1)
                loop.update_condition(count + 1 < 4)
            _, y = loop()
        elif kind == "cond":
            y = ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: ol.layer.dropout(x, rate=0.5), lambda: x)
        else:
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.layer.dropout(x, rate=0.5))
            with ie.false_block():
                ie.output(ol.layer.dropout(-x, rate=0.5))
            y = ie(ol.op.reduce_sum(x, axis=1) > 0.0)
        (dx,) = ol.gradients([y], [x])
    return program, [y, dx]


ROWS = numpy.vstack([numpy.ones((3, 50)), -numpy.ones((2, 50))]).astype("float32")


@pytest.mark.parametrize("kind", ["while", "cond", "ifelse"])
def test_dropout_in_a_block_uses_the_mask_of_the_value_for_the_gradient(kind):
    program, fetch = dropped(kind)
    y, dx = ol.Executor().run(program, {"x": ROWS}, fetch, scope=ol.Scope(), training=True)
    slope = y.sum(0) / ROWS if kind == "while" else y / ROWS
    assert set(numpy.unique(y / ROWS)) >= {0.0, 2.0}
    assert numpy.array_equal(dx, slope)
    calm, calm_dx = ol.Executor().run(program, {"x": ROWS}, fetch, scope=ol.Scope(), training=False)
    assert numpy.array_equal(numpy.abs(calm), numpy.ones_like(calm))
    assert numpy.abs(calm_dx).sum() == ROWS.size * (4 if kind == "while" else 1)


def test_each_trip_draws_anew_and_a_repeated_step_draws_the_same():
    program, (y, _) = dropped("while")
    first, again = (ol.Executor().run(program, {"x": ROWS}, [y], scope=ol.Scope(), training=True)[0] for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert len({trip.tobytes() for trip in first}) == 4


# Where gradients end


@pytest.mark.parametrize("kind", ["while", "cond", "ifelse", "rnn"])
def test_a_gradient_ends_where_a_variable_of_a_block_says_so(kind):
    def write(f):
        with ol.Program() as program:
            x = ol.layer.data("x", shape=[2], dtype="float64")
            y = f(x)
            (dx,) = ol.gradients([y], [x])
        return ol.Executor().run(program, {"x": numpy.array([[2.0, 3.0]])}, [y, dx], scope=ol.Scope())

    def still(x):
        square = ol.op.square(x)
        square.stop_gradient = True
        return square * x  # 3 x**2 were the square not still

    def in_block(x):
        if kind == "cond":
            return ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: still(x), lambda: x)
        if kind == "rnn":
            rnn = ol.rnn()
            with rnn.step():
                rnn.output(still(rnn.step_input(x)))
            return rnn()
        if kind == "while":
            count = ol.op.full(shape=(), value=0, dtype="int64")
            loop = ol.while_loop(count < 1)
            with loop.block():
                loop.carry(x, still(x))
                loop.carry(count, count + 1)
                loop.update_condition(count + 1 < 1)
            return loop()[0]
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(still(x))
        with ie.false_block():
            ie.output(x)
        return ie(ol.op.reduce_sum(x, axis=1) > 0.0)

    value, gradient = write(in_block)
    agree(value, [[8.0, 27.0]], AUTOGRAD)
    agree(gradient, [[4.0, 9.0]], AUTOGRAD)


def through_integers(v):
    """A layer, and of its result only where the largest element stands."""
    h = ol.layer.fc(v, 3, name="inner", bias=False)
    return ol.op.cast(ol.op.one_hot(ol.op.argmax(h, axis=1), depth=3), dtype="float32")


def lossy(kind, write):
    x, k = ol.layer.data("x", shape=[3]), ol.layer.data("k", shape=[], dtype="int64", batch=None)
    if kind == "cond":
        return ol.cond(k > 0, lambda: write(x), lambda: x)
    if kind == "cond in cond":
        return ol.cond(k > 0, lambda: ol.cond(k > 1, lambda: write(x), lambda: x), lambda: x)
    if kind == "while":
        loop = ol.while_loop(k > 0)
        with loop.block():
            loop.carry(x, write(x))
            loop.carry(k, k - 1)
            loop.update_condition(k - 1 > 0)
        return loop()[0]
    if kind == "rnn":
        rnn = ol.rnn()
        with rnn.step():
            start = ol.op.reshape(rnn.step_input(x), shape=(1, 3))
            rnn.output(write(start))
        return rnn()
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(write(x))
    with ie.false_block():
        ie.output(x)
    return ie(ol.op.reduce_sum(x, axis=1) > 0.0)


BLOCKS = {
    "cond": "main/cond_0.true",
    "cond in cond": "main/cond_0.true/cond_1.true",
    "while": "main/while_0.body",
    "rnn": "main/rnn_0.body",
    "ifelse": "main/if_else_0.true",
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_parameter_that_is_reached_only_through_integers_in_a_block_is_named_with_the_op_and_its_block(kind):
    with ol.Program() as program:
        cost = ol.layer.mean(lossy(kind, through_integers))
        with pytest.raises(ol.GradientError) as caught:
            ol.append_backward(cost)
    argmax = next(op for block in program.blocks for op in block.ops if op.type == "argmax")
    assert str(caught.value) == (
        f'"argmax" has no gradient, yet "mean_0" reaches "inner.w" only through it, in {BLOCKS[kind]}\n'
        f"  {argmax.location}\n"
        f"      {program.main.var('inner.w').describe()}\n"
        '  Try: mark "inner.w" not trainable, or declare the gradient of "argmax"    (oarlock explain GradientError)'
    )


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_parameter_that_is_reached_only_through_what_stops_gradients_is_named_with_it(kind):
    def write(v):
        h = ol.layer.fc(v, 3, name="inner", bias=False)
        h.stop_gradient = True
        return ol.op.tanh(h)

    with ol.Program():
        cost = ol.layer.mean(lossy(kind, write))
        with pytest.raises(ol.GradientError) as caught:
            ol.append_backward(cost)
    assert caught.value.message == f'"inner.out" is stop_gradient, yet "mean_0" reaches "inner.w" only through it, in {BLOCKS[kind]}'
    assert caught.value.hint == 'mark "inner.w" not trainable, or let gradients through "inner.out"'

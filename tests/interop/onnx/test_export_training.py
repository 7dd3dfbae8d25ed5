"""Whole training steps under ONNX Runtime: losses and state are those of our own run, step after step."""

from collections.abc import Callable

import pytest

pytest.importorskip("onnxruntime")

import numpy
from interop.onnx.onnx_sessions import Session, session_of
from tolerances import ONNX_LOSSES

import oarlock as ol
from oarlock.runtime.feed import check_feed

STEPS = 5


def perceptron() -> ol.Var:
    x, y = ol.layer.data("x", shape=[6]), ol.layer.data("y", shape=[], dtype="int64")
    hidden = ol.layer.layer_norm(ol.layer.gelu(ol.layer.fc(x, 8)))
    cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 3), y)
    ol.optimizer.Adam(0.05).minimize(cost)
    return cost


def scheduled() -> ol.Var:
    """A warm-up, a plateau, a decay of its own, clipping, accumulation in a branch, an average."""
    x, y = ol.layer.data("x", shape=[6]), ol.layer.data("y", shape=[], dtype="int64")
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.fc(x, 8, act="tanh"), 3), y)
    rate = ol.optimizer.schedule.WarmUp(ol.optimizer.schedule.ReduceOnPlateau(0.05, patience=0), 2, 0.5)
    clip, average = ol.optimizer.ClipByGlobalNorm(0.1), ol.optimizer.ExponentialAverage(0.9)
    ol.optimizer.AdamW(rate, weight_decay=0.1, clip=clip, average=average, accumulate=2).minimize(cost)
    return cost


def images() -> ol.Var:
    x, y = ol.layer.data("x", shape=[2, 9, 8]), ol.layer.data("y", shape=[], dtype="int64")
    hidden = ol.layer.batch_norm(ol.layer.conv2d(x, 4, 3, stride=2, padding=1, bias=False), act="relu")
    hidden = ol.layer.pool2d(ol.layer.conv2d(hidden, 6, 2), 2)
    hidden = ol.layer.dropout(ol.layer.flatten(hidden), rate=0.25)
    cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 3), y)
    ol.optimizer.Momentum(0.05, 0.9, nesterov=True).minimize(cost)
    return cost


def recurrent() -> ol.Var:
    x = ol.layer.data("x", shape=["n", 3], batch="t")
    both = []
    for reverse in (False, True):
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[4])
            after = ol.layer.tanh(ol.layer.fc(step, 4) + ol.layer.fc(rnn.previous_memory(state), 4, bias=False))
            rnn.update_memory(state, after)
            rnn.output(after)
        both.append(rnn())
    cost = ol.layer.mean(ol.op.square(ol.op.concat(both, axis=2)))
    ol.optimizer.SGD(0.5).minimize(cost)
    return cost


def attention() -> ol.Var:
    x, y = ol.layer.data("x", shape=[5], dtype="int64"), ol.layer.data("y", shape=[5], dtype="int64")
    hidden = ol.layer.embedding(x, (7, 8))
    q, k, v = ol.layer.split(ol.layer.fc(hidden, 24, bias=False), sections=3, axis=-1)  # a key's bias has no gradient
    hidden = hidden + ol.layer.attention(q, k, v, heads=2, causal=True)
    cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 7), y)
    ol.optimizer.Adam(0.01).minimize(cost)
    return cost


def ragged() -> ol.Var:
    x, y = ol.layer.data("x", shape=[3], ragged=1), ol.layer.data("y", shape=[], dtype="int64")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        state = rnn.memory(shape=[4])
        after = ol.layer.tanh(ol.layer.fc(step, 4) + ol.layer.fc(rnn.previous_memory(state), 4, bias=False))
        rnn.update_memory(state, after)
        rnn.output(after)
    pooled = ol.layer.sequence_pool(rnn(), "mean")
    cost = ol.layer.cross_entropy(ol.layer.fc(rnn.final_memory(state) + pooled, 3), y)
    ol.optimizer.SGD(0.5).minimize(cost)
    return cost


def branches() -> ol.Var:
    x, y = ol.layer.data("x", shape=[4]), ol.layer.data("y", shape=[4])
    which = ol.layer.data("which", shape=[], dtype="int64", batch=None)
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(ol.layer.fc(x, 4, act="relu"))
    with ie.false_block():
        ie.output(ol.layer.fc(x, 4))
    merged = ie(ol.op.slice(x, axis=1, stop=1) > 0)
    merged = ol.layer.switch_case(which, {0: lambda: ol.layer.fc(merged, 4, name="first")}, lambda: ol.layer.fc(merged, 4, name="other"))
    cost = ol.layer.mse(merged, y)
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost


def loop_on_a_condition() -> ol.Var:
    x, y = ol.layer.data("x", shape=[4]), ol.layer.data("y", shape=[4])
    s, trips = ol.op.full_like(x, value=0.0), ol.op.full(shape=(), value=0, dtype="int64")
    loop = ol.while_loop(trips < 9)
    with loop.block():
        after = ol.layer.tanh(ol.layer.fc(s, 4, bias=False, params=["W"]) + x)
        loop.carry(s, after)
        loop.carry(trips, trips + 1)
        loop.update_condition((ol.layer.mean(ol.op.abs(after - s)) >= 1e-3) & (trips + 1 < 9))
    state, count = loop()
    cost = ol.layer.mse(state, y)
    ol.optimizer.SGD(0.05).minimize(cost)
    count.block.program.targets["trips"] = count
    return cost


def feed_of(program: ol.Program, step: int) -> dict[str, object]:
    """Numbers for each input, other ones in each step, of a batch that grows."""
    random = numpy.random.default_rng(step)
    sizes = {"n": 3 + step, "t": 2 + step}
    found: dict[str, object] = {}
    ragged_inputs = program.ragged_inputs()
    cuts = {var for levels in ragged_inputs.values() for var in levels}
    for var in program.main.inputs:
        shape = [sizes.get(size, 3 + step) if isinstance(size, str) else size for size in var.shape]
        if var in cuts:
            continue
        if var in ragged_inputs:
            lengths = [*range(step, step + shape[0] - 1), 0]  # as many rows as `y` has, one of them empty
            rows = [random.normal(size=(length, *shape[1:])).astype("float32") for length in lengths]
            found[var.name] = ol.Ragged.from_lists([row.tolist() for row in rows])
        elif var.dtype.is_integer:
            found[var.name] = random.integers(0, 3, shape) if shape else numpy.array(step % 2)
        else:
            found[var.name] = random.normal(size=shape).astype(str(var.dtype))
    return found


def train_in_both(program: ol.Program, cost: ol.Var, steps: int = STEPS, opset: int = 18) -> tuple[Session, list[float]]:
    """Train here and there on the same data; compare the targets and all state after each step."""
    program.targets["cost"] = cost
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    session = session_of(program, scope, opset=opset, training=True)
    exported = session.exported
    state, losses = dict(exported.first), []
    for step in range(steps):
        feed = feed_of(program, step)
        tensors = check_feed(program, feed, set(program.main.inputs), ol.CPUPlace())
        results = session.run({**tensors, **state, **exported.keys(step)})
        expected = executor.run(program, feed, list(program.targets), scope=scope)
        for label, value in zip(program.targets, expected, strict=True):
            numpy.testing.assert_allclose(results[label], value, *ONNX_LOSSES, err_msg=f"{label}, step {step}")
        state = {name: results[following] for name, following in exported.state.items()}
        for name, value in state.items():
            numpy.testing.assert_allclose(value, numpy.asarray(scope[name]), *ONNX_LOSSES, err_msg=f"{name}, step {step}")
        losses.append(float(results["cost"]))
    return session, losses


MODELS: list[Callable[[], ol.Var]] = [perceptron, scheduled, images, recurrent, attention, ragged, branches, loop_on_a_condition]


@pytest.mark.parametrize("model", [pytest.param(model, id=model.__name__) for model in MODELS])
def test_a_training_step_under_onnx_runtime_does_what_ours_does(model: Callable[[], ol.Var]):
    with ol.Program(seed=3) as program:
        cost = model()
    session, losses = train_in_both(program, cost)
    assert len(set(losses)) == STEPS, "nothing is learnt"
    written = {var.name for var in program.persistables() if any(op.is_commit and var in set(op.writes) for op in program.main.ops)}
    assert session.exported.state == {name: f"{name}@NEXT" for name in written}


@pytest.mark.parametrize("opset", [17, 20, 23])
def test_a_training_step_is_said_in_other_opsets(opset: int):
    with ol.Program(seed=3) as program:
        cost = ragged()
    train_in_both(program, cost, steps=2, opset=opset)


def test_branches_are_if_and_loops_are_loop():
    types = {}
    for model in (branches, recurrent, ragged, loop_on_a_condition):
        with ol.Program() as program:
            program.targets["cost"] = model()
        graph = session_of(program, ol.init(program, ol.Scope()), training=True).model.graph
        types[model.__name__] = [node.op_type for node in graph.node if node.op_type in ("If", "Loop", "Scan")]
    assert set(types["branches"]) == {"If"}
    assert types["recurrent"] == ["Loop"] * 4
    assert types["ragged"] == ["Loop"] * 2
    assert types["loop_on_a_condition"] == ["Loop"] * 2


def test_what_is_frozen_is_no_state_and_stays():
    with ol.Program(seed=3) as program:
        program.targets["cost"] = perceptron()
    scope = ol.init(program, ol.Scope())
    frozen = program.parameters()[0].name
    scope.var(frozen).estimated = False
    exported = session_of(program, scope, training=True).exported
    assert frozen not in exported.state
    assert f"{frozen}@MOMENT1" not in exported.state
    assert program.parameters()[1].name in exported.state


def test_dropout_draws_our_own_numbers_where_it_is_told_our_keys():
    with ol.Program(seed=11) as program:
        x = ol.layer.data("x", shape=[50])
        program.targets["y"] = ol.layer.dropout(x, rate=0.3)
        w = ol.layer.create_parameter([50], name="w")
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(program.targets["y"] * w))
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    session = session_of(program, scope, training=True)
    state, feed = dict(session.exported.first), {"x": numpy.ones((4, 50), "float32")}
    for step in range(3):
        results = session.run({**feed, **state, **session.exported.keys(step)})
        (expected,) = executor.run(program, feed, ["y"], scope=scope)
        assert results["y"].tobytes() == expected.tobytes()
        assert 0 < (expected == 0).mean() < 0.6
        state = {name: results[following] for name, following in session.exported.state.items()}
    assert state["@RANDOM"] == 3


def draws_in_a_loop(reverse: bool) -> ol.Var:
    x = ol.layer.data("x", shape=["n", 4], batch="t")
    rnn = ol.rnn(reverse=reverse)
    with rnn.step():
        rnn.output(ol.layer.dropout(rnn.step_input(x), rate=0.5))
    return ol.layer.mean(rnn() * ol.layer.create_parameter([4], name="w"))


def draws_in_a_ragged_loop() -> ol.Var:
    x, rnn = ol.layer.data("x", shape=[4], ragged=1), ol.rnn(reverse=True)
    with rnn.step():
        rnn.output(ol.layer.dropout(rnn.step_input(x), rate=0.5))
    return ol.layer.mean(rnn() * ol.layer.create_parameter([4], name="w"))


def draws_in_a_branch_of_a_loop_in_a_loop() -> ol.Var:
    x = ol.layer.data("x", shape=["n", 4], batch="t")
    rnn = ol.rnn()
    with rnn.step():
        held, trips = rnn.step_input(x), ol.op.full(shape=(), value=0, dtype="int64")
        loop = ol.while_loop(trips < 2)
        with loop.block():
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.layer.dropout(held, rate=0.5))
            with ie.false_block():
                ie.output(held * 0.5)
            loop.carry(held, ie(ol.op.slice(held, axis=1, stop=1) > 0))
            loop.carry(trips, trips + 1)
            loop.update_condition(trips + 1 < 2)
        rnn.output(loop()[0])
    return ol.layer.mean(rnn() * ol.layer.create_parameter([4], name="w"))


def draws_in_a_branch() -> ol.Var:
    x, which = ol.layer.data("x", shape=[4]), ol.layer.data("which", shape=[], dtype="int64", batch=None)
    kept = ol.layer.switch_case(which, {0: lambda: ol.layer.dropout(x, rate=0.5)}, lambda: x * 0.5)
    return ol.layer.mean(kept * ol.layer.create_parameter([4], name="w"))


@pytest.mark.parametrize(
    ("write", "depth"),
    [
        pytest.param(lambda: draws_in_a_loop(False), 1, id="a loop"),
        pytest.param(lambda: draws_in_a_loop(True), 1, id="a loop from the end"),
        pytest.param(draws_in_a_ragged_loop, 1, id="a ragged loop"),
        pytest.param(draws_in_a_branch_of_a_loop_in_a_loop, 2, id="a branch of a loop in a loop"),
        pytest.param(draws_in_a_branch, 0, id="a branch"),
    ],
)
def test_each_trip_of_a_loop_draws_our_own_numbers_by_its_key(write: Callable[[], ol.Var], depth: int):
    with ol.Program(seed=1) as program:
        cost = write()
        ol.optimizer.SGD(0.1).minimize(cost)
    program.targets = {"cost": cost, "slope": program.main.var("w@GRAD")}
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    session = session_of(program, scope, training=True)
    (key,) = session.exported.keys(0, trips=9).values()
    assert key.shape == (9,) * depth
    assert len(set(key.ravel().tolist())) == 9**depth
    if depth:
        with pytest.raises(ol.ArgumentError, match="needs a key for each iteration of a loop, but trips is not given"):
            session.exported.keys(0)
    state, slopes = dict(session.exported.first), []
    for step in range(3):
        feed = feed_of(program, step) | ({"which": numpy.array(0)} if "which" in program.main.vars else {})
        tensors = check_feed(program, feed, set(program.main.inputs), ol.CPUPlace())
        results = session.run({**tensors, **state, **session.exported.keys(step, trips=9)})
        expected = executor.run(program, feed, ["cost", "slope"], scope=scope)
        for label, value in zip(("cost", "slope"), expected, strict=True):
            numpy.testing.assert_allclose(results[label], value, *ONNX_LOSSES, err_msg=f"{label}, step {step}")
        slopes.append(expected[1].tolist())
        state = {name: results[following] for name, following in session.exported.state.items()}
    assert slopes[0] != slopes[1] != slopes[2]


def test_a_model_that_draws_in_a_loop_is_not_run_where_nothing_says_how_many_trips_there_are():
    with ol.Program(seed=1):
        x = ol.layer.data("x", shape=["n", 4], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            rnn.output(step + ol.op.random_uniform_like(step, low=0.0, high=1.0))
        y = rnn()
    with pytest.raises(ol.ProgramError, match="draws random numbers in a loop whose number of iterations is unknown"):
        ol.infer(y, {"x": numpy.ones((2, 3, 4), "float32")}, ol.Scope(), backend="onnxruntime")

"""A loop of which an output is not used: what only that needs is not trained, whoever asks."""

import numpy as np
import pytest

import oarlock as ol


def train(program, cost, feed):
    return set(ol.train(cost, feed, optimizer=ol.optimizer.SGD(0.1), epochs=1, progress=False, scope=ol.Scope()).parameters)


def minimize(program, cost, feed):
    return {parameter.name for parameter, _ in ol.optimizer.SGD(0.1).minimize(cost)}


def append_backward(program, cost, feed):
    return {parameter.name for parameter, _ in ol.append_backward(cost)}


def net(program, cost, feed):
    return {parameter.name for parameter, _ in ol.Net(program).add_backward_ops(cost)}


def memory_as_the_output():
    """Issue 3129: "we don't have to consume the output of an RNNOp"."""
    with ol.Program(seed=1) as program:
        a = ol.layer.data("a", shape=[3], batch="t")
        total = ol.framework.tensor()
        ol.layer.rnn(a, lambda: ol.layer.fc(ol.layer.add_to(total, None), 2, params=["unused.w", "unused.b"]))
        return program, ol.layer.mean(ol.op.square(ol.layer.fc(ol.op.reshape(total, shape=(1, 3)), 1, params=["w", "b"])))


def one_of_two_outputs():
    with ol.Program(seed=1) as program:
        a = ol.layer.data("a", shape=[3], batch="t")
        rnn = ol.create_rnn()
        with rnn.stepnet():
            x = a.as_step_input()
            rnn.output(ol.layer.fc(x, 2, params=["unused.w", "unused.b"]), ol.layer.fc(x, 2, params=["w", "b"]))
        _, used = rnn()
        return program, ol.layer.mean(ol.op.square(used))


def a_memory_that_nobody_wants():
    with ol.Program(seed=1) as program:
        a = ol.layer.data("a", shape=[3], batch="t")
        zero = ol.layer.data("zero", shape=[2], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=zero)
            rnn.update_memory(state, rnn.previous_memory(state) + ol.layer.fc(a, 2, params=["unused.w", "unused.b"]))
            rnn.output(ol.layer.fc(a, 2, params=["w", "b"]))
        return program, ol.layer.mean(ol.op.square(rnn()))


@pytest.mark.parametrize("how", [train, minimize, append_backward, net])
@pytest.mark.parametrize("model", [memory_as_the_output, one_of_two_outputs, a_memory_that_nobody_wants])
def test_a_parameter_that_only_an_unused_output_reads_is_not_trained(model, how):
    program, cost = model()
    feed = {"a": np.ones((4, 3), "float32"), "zero": np.zeros(2, "float32")}
    trained = how(program, cost, {name: feed[name] for name in feed if name in program.main.vars})
    assert {name for name in trained if not name.startswith("unused") and "@" not in name and name in ("w", "b")} == {"w", "b"}
    if how is not train:
        assert trained == {"w", "b"}


def test_a_parameter_that_decides_how_often_a_loop_runs_is_depended_on():
    with ol.Program(seed=1):
        start = ol.layer.data("start", shape=[], batch=None)
        bound = ol.layer.create_parameter([1], name="bound")
        loop = ol.while_loop(start < 10.0, max_trips=5)
        with loop.block():
            after = start * 2.0
            loop.carry(start, after)
            loop.update_condition(after < ol.op.reshape(bound, shape=()))
        cost = ol.op.square(loop())
        with pytest.raises(ol.GradientError, match='"bound"'):
            ol.append_backward(cost)

"""The models, as their users would write them."""

from workloads.cells import gru_cell

import oarlock as ol

__all__ = [
    "chain_of_gates",
    "documents",
    "minimal_gated_unit",
    "one_of_two_networks",
    "residual_perceptron",
    "two_directions_with_attention",
]


def minimal_gated_unit() -> ol.Var:
    """One gate for what is forgotten and for what is read, in float64, over 60 steps (Zhou et al., 2016); momentum."""
    x = ol.layer.data("x", shape=["n", 48], dtype="float64", batch="t")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        state = rnn.memory(shape=[96])
        h = rnn.previous_memory(state)
        f = ol.layer.sigmoid(ol.layer.fc(step, 96, params=["Wf", "bf"]) + ol.layer.fc(h, 96, bias=False, params=["Uf"]))
        c = ol.layer.tanh(ol.layer.fc(step, 96, params=["Wh", "bh"]) + ol.layer.fc(f * h, 96, bias=False, params=["Uh"]))
        after = (1 - f) * h + f * c
        rnn.update_memory(state, after)
        rnn.output(after)
    cost = ol.layer.mean(ol.op.square(rnn()))
    ol.optimizer.Momentum(0.5, 0.9).minimize(cost)
    return cost


def documents() -> ol.Var:
    """Sentences of words, documents of sentences, none padded: a gated unit reads each sentence, a plain one each document; SGD."""
    x = ol.layer.data("x", shape=[32], ragged=2)
    y = ol.layer.data("y", shape=[], dtype="int64")
    words = ol.rnn()
    with words.step():
        step = words.step_input(x)
        state = words.memory(shape=[64])
        words.update_memory(state, gru_cell(step, words.previous_memory(state), 64))
    words()
    sentences = ol.rnn()
    with sentences.step():
        step = sentences.step_input(words.final_memory(state))
        whole = sentences.memory(shape=[48])
        before = sentences.previous_memory(whole)
        after = ol.layer.tanh(ol.layer.fc(step, 48, params=["V", "c"]) + ol.layer.fc(before, 48, bias=False, params=["R"]))
        sentences.update_memory(whole, after)
    sentences()
    cost = ol.layer.cross_entropy(ol.layer.fc(sentences.final_memory(whole), 4, name="logits"), y)
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost


def one_of_two_networks() -> ol.Var:
    """A number that is fed says which network runs: a perceptron of the mean over time, or a loop; SGD."""
    x = ol.layer.data("x", shape=["n", 64], batch="t")
    y = ol.layer.data("y", shape=[64], batch="n")
    which = ol.layer.data("which", shape=[], dtype="int64", batch=None)

    def of_the_mean() -> ol.Var:
        return ol.layer.fc(ol.layer.fc(ol.op.mean(x, axis=0), 256, act="relu", name="mean_0"), 64, name="mean_1")

    def step_by_step() -> ol.Var:
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[128])
            before = rnn.previous_memory(state)
            after = ol.layer.relu(ol.layer.fc(step, 128, params=["W", "b"]) + ol.layer.fc(before, 128, bias=False, params=["U"]))
            rnn.update_memory(state, after)
        rnn()
        return ol.layer.fc(rnn.final_memory(state), 64, name="loop")

    cost = ol.layer.mse(ol.layer.switch_case(which, {0: of_the_mean}, step_by_step), y)
    ol.optimizer.SGD(0.05).minimize(cost)
    return cost


def two_directions_with_attention() -> ol.Var:
    """A sequence is read forwards and backwards, attention weighs its steps, and the whole is classified; Adam."""
    x = ol.layer.data("x", shape=["n", 48], batch="t")
    y = ol.layer.data("y", shape=[], dtype="int64", batch="n")

    def read(name: str, *, reverse: bool) -> ol.Var:
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[96])
            before = ol.layer.fc(rnn.previous_memory(state), 96, bias=False, params=[f"{name}.U"])
            after = ol.layer.tanh(ol.layer.fc(step, 96, params=[f"{name}.W", f"{name}.b"]) + before)
            rnn.update_memory(state, after)
            rnn.output(after)
        return rnn()

    both = ol.layer.concat([read("forward", reverse=False), read("backward", reverse=True)], axis=2)
    scores = ol.layer.fc(ol.layer.fc(both, 32, act="tanh", name="key"), 1, name="score")
    weights = ol.op.transpose(ol.layer.softmax(ol.op.transpose(scores, axes=(2, 1, 0))), axes=(2, 1, 0))
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.op.reduce_sum(weights * both, axis=0), 5, name="logits"), y)
    ol.optimizer.Adam(1e-3).minimize(cost)
    return cost


def residual_perceptron() -> ol.Var:
    """Four blocks of a perceptron with shortcuts around them, each behind a layer norm; Adam."""
    x = ol.layer.data("x", shape=[64])
    y = ol.layer.data("y", shape=[], dtype="int64")
    h = ol.layer.fc(x, 192, name="first")
    for block in range(4):
        inner = ol.layer.fc(ol.layer.layer_norm(h, name=f"norm_{block}"), 384, act="relu", name=f"up_{block}")
        h = h + ol.layer.fc(inner, 192, name=f"down_{block}")
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.layer_norm(h, name="norm_last"), 10, name="logits"), y)
    ol.optimizer.Adam(1e-3).minimize(cost)
    return cost


def chain_of_gates() -> ol.Var:
    """Many element-wise operators on large tensors, one after another, behind one product; SGD."""
    x = ol.layer.data("x", shape=[256])
    h = ol.layer.fc(x, 256, name="first")
    for _ in range(4):
        h = h + ol.layer.tanh(h) * ol.layer.sigmoid(h)
    cost = ol.layer.mean(ol.op.square(h))
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost

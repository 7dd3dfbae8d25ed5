"""The model that is trained: a recurrent network, a ragged loop, a while loop and rows that take two branches; and its feed."""

from collections.abc import Mapping

import numpy
from block_operators import ragged_loop

import oarlock as ol

__all__ = ["feed", "model"]


def model() -> ol.Program:
    """A training program whose loops make other trips in every step."""
    with ol.Program(seed=3) as program:
        dense = ol.layer.data("dense", shape=["n", 3], batch="t")
        words = ol.layer.data("words", shape=[3], batch="w")
        splits = ol.layer.data("splits", shape=[], dtype="int64", batch="r+1")
        start = ol.layer.data("start", shape=[4], batch="n")
        network = ol.rnn()
        with network.step():
            state = network.memory(init=start)
            both = ol.layer.concat([network.step_input(dense), network.previous_memory(state)], axis=1)
            network.update_memory(state, ol.layer.fc(both, 4, act="tanh", name="state"))
        network()
        last = network.final_memory(state)
        rows = ol.ifelse()
        with rows.true_block():
            rows.output(ol.op.square(last))
        with rows.false_block():
            rows.output(ol.op.neg(last))
        sides = rows(ol.op.reduce_sum(last, axis=1, keepdim=True) > 0.0)
        read = ragged_loop("rnn_words", words, splits, lambda word: ol.layer.fc(word, 4, act="tanh", name="word"))
        total = ol.op.reduce_sum(ol.op.square(read)) + 1.0
        loop = ol.while_loop(total > 1.0, max_trips=50)
        with loop.block():
            less = total * 0.8
            loop.carry(total, less)
            loop.update_condition(less > 1.0)
        cost = ol.op.add(ol.layer.mean(sides), loop(), name="cost")
        program.targets["cost"] = cost
        ol.optimizer.Adam(0.001).minimize(cost)
    return program


def feed(seed: int, step: int) -> Mapping[str, numpy.ndarray]:
    """The feed of a step: the sizes of everything follow from the seed and the step."""
    random = numpy.random.default_rng([seed, step])
    rows, lengths = int(random.integers(1, 5)), random.integers(0, 5, int(random.integers(1, 4)))
    return {
        "dense": random.normal(size=(int(random.integers(0, 4)), rows, 3)).astype("float32"),
        "words": random.normal(size=(int(lengths.sum()), 3)).astype("float32"),
        "splits": numpy.concatenate([[0], numpy.cumsum(lengths)]),
        "start": random.normal(size=(rows, 4)).astype("float32"),
    }

"""Sequences of very different lengths."""

import oarlock as ol
from workloads.cells import gru_cell

__all__ = ["ragged_rnn"]


def ragged_rnn() -> ol.Var:
    """Gated recurrent units over 64 sequences of 5 to 200 steps, none padded; each is judged by its own last state; SGD."""
    x = ol.layer.data("x", shape=[64], ragged=1)
    y = ol.layer.data("y", shape=[], dtype="int64")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        state = rnn.memory(shape=[128])
        rnn.update_memory(state, gru_cell(step, rnn.previous_memory(state), 128))
    rnn()
    cost = ol.layer.cross_entropy(ol.layer.fc(rnn.final_memory(state), 2, name="logits"), y)
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost

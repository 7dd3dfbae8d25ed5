"""Recurrent networks over 100 steps, or 50: cells written by the user, and the layer that comes with the framework."""

import oarlock as ol
from workloads.cells import lstm_cell

__all__ = ["lstm_builtin", "lstm_custom", "lstm_custom_outputs", "rnn_custom", "rnn_gated_custom_small"]


def _trained(outputs: ol.Var, rate: float) -> ol.Var:
    """The mean of squares of all outputs, and a step of SGD."""
    cost = ol.layer.mean(ol.op.square(outputs))
    ol.optimizer.SGD(rate).minimize(cost)
    return cost


def rnn_custom() -> ol.Var:
    """``h = tanh(x W + h U + b)``."""
    x = ol.layer.data("x", shape=["n", 128], batch="t")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        state = rnn.memory(shape=[256])
        before = rnn.previous_memory(state)
        h = ol.layer.tanh(ol.layer.fc(step, 256, params=["W", "b"]) + ol.layer.fc(before, 256, bias=False, params=["U"]))
        rnn.update_memory(state, h)
        rnn.output(h)
    return _trained(rnn(), 1.0)


def lstm_custom_outputs() -> ol.Var:
    x = ol.layer.data("x", shape=["n", 128], batch="t")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        hidden, cell = rnn.memory(shape=[256]), rnn.memory(shape=[256])
        h, c = lstm_cell(step, rnn.previous_memory(hidden), rnn.previous_memory(cell), 256)
        rnn.update_memory(hidden, h)
        rnn.update_memory(cell, c)
        rnn.output(h)
    return rnn()


def lstm_custom() -> ol.Var:
    """Long short-term memory, written by the user."""
    return _trained(lstm_custom_outputs(), 10.0)


def lstm_builtin() -> ol.Var:
    """The same, by the layer of the framework."""
    outputs, _, _ = ol.layer.lstm(ol.layer.data("x", shape=["n", 128], batch="t"), 256)
    return _trained(outputs, 10.0)


def rnn_gated_custom_small() -> ol.Var:
    """One gate, layer norm in the recurrence, and a shortcut from the input: a cell that no library has."""
    x = ol.layer.data("x", shape=["n", 64], batch="t")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        state = rnn.memory(shape=[128])
        h = rnn.previous_memory(state)
        gate = ol.layer.layer_norm(ol.layer.fc(h, 128, bias=False, params=["Uf"]), name="norm_f")
        f = ol.layer.sigmoid(ol.layer.fc(step, 128, params=["Wf", "bf"]) + gate)
        candidate = ol.layer.layer_norm(ol.layer.fc(f * h, 128, bias=False, params=["Uh"]), name="norm_h")
        c = ol.layer.tanh(ol.layer.fc(step, 128, params=["Wh", "bh"]) + candidate)
        after = (1 - f) * h + f * c
        rnn.update_memory(state, after)
        rnn.output(after + ol.layer.fc(step, 128, bias=False, params=["P"]))
    return _trained(rnn(), 0.1)

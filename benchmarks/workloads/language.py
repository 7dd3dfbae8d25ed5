"""Language models of characters: one recurrent, one with attention."""

import oarlock as ol
from workloads.cells import gru_cell

__all__ = ["char_lm_gru", "transformer"]


def char_lm_gru() -> ol.Var:
    """An embedding, gated recurrent units written by the user, a dense layer; 32 texts of 64 characters, time first; Adam."""
    x = ol.layer.data("x", shape=["n"], dtype="int64", batch="t")
    y = ol.layer.data("y", shape=["n"], dtype="int64", batch="t")
    embedded = ol.layer.embedding(x, (96, 128))
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(embedded)
        state = rnn.memory(shape=[256])
        h = gru_cell(step, rnn.previous_memory(state), 256)
        rnn.update_memory(state, h)
        rnn.output(h)
    cost = ol.layer.cross_entropy(ol.layer.fc(rnn(), 96, name="logits"), y)
    ol.optimizer.Adam(1e-3).minimize(cost)
    return cost


def transformer() -> ol.Var:
    """Two blocks that normalize first, four heads, positions that are learnt; 8 texts of 128 characters; Adam."""
    x = ol.layer.data("x", shape=[128], dtype="int64")
    y = ol.layer.data("y", shape=[128], dtype="int64")
    hidden = ol.layer.embedding(x, (96, 256)) + ol.layer.create_parameter([128, 256], name="positions")
    for _ in range(2):
        q, k, v = ol.layer.split(ol.layer.fc(ol.layer.layer_norm(hidden), 3 * 256), sections=3, axis=-1)
        hidden = hidden + ol.layer.fc(ol.layer.attention(q, k, v, heads=4, causal=True), 256)
        wide = ol.layer.gelu(ol.layer.fc(ol.layer.layer_norm(hidden), 1024), approximate=True)
        hidden = hidden + ol.layer.fc(wide, 256)
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.layer_norm(hidden), 96), y)
    ol.optimizer.Adam(1e-3).minimize(cost)
    return cost

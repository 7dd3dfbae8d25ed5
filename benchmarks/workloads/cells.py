"""Recurrent cells, as a user writes them: one step, with what the state was before it."""

import oarlock as ol

__all__ = ["gru_cell", "lstm_cell"]


def lstm_cell(x: ol.Var, h: ol.Var, c: ol.Var, size: int) -> tuple[ol.Var, ol.Var]:
    """Long short-term memory: the next h and c."""
    gates = ol.layer.fc(x, 4 * size, params=["W", "b"]) + ol.layer.fc(h, 4 * size, bias=False, params=["U"])
    i, f, g, o = ol.layer.split(gates, sections=4, axis=-1)
    c = ol.layer.sigmoid(f) * c + ol.layer.sigmoid(i) * ol.layer.tanh(g)
    return ol.layer.sigmoid(o) * ol.layer.tanh(c), c


def gru_cell(x: ol.Var, h: ol.Var, size: int) -> ol.Var:
    """Gated recurrent units, the reset gate after the product: the next h."""
    x_r, x_z, x_n = ol.layer.split(ol.layer.fc(x, 3 * size, params=["W", "b"]), sections=3, axis=-1)
    h_r, h_z, h_n = ol.layer.split(ol.layer.fc(h, 3 * size, bias=False, params=["U"]), sections=3, axis=-1)
    z = ol.layer.sigmoid(x_z + h_z)
    n = ol.layer.tanh(x_n + ol.layer.sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * h

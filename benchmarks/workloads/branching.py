"""Rows that go two ways, and a loop that nobody knows the length of."""

import oarlock as ol

__all__ = ["ifelse_rows", "while_dynamic"]


def ifelse_rows() -> ol.Var:
    """256 rows: those whose first number is above 0 take a small network, the others a large one; merged in their order."""
    x = ol.layer.data("x", shape=[64])
    y = ol.layer.data("y", shape=[64])
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(ol.layer.fc(ol.layer.fc(x, 256, act="relu"), 64))
    with ie.false_block():
        hidden = ol.layer.fc(ol.layer.fc(x, 512, act="relu"), 512, act="relu")
        ie.output(ol.layer.fc(hidden, 64))
    merged = ie(ol.op.slice(x, axis=1, stop=1) > 0)
    cost = ol.layer.mse(merged, y)
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost


def while_dynamic() -> ol.Var:
    """``s = tanh(s W + x)`` until it hardly moves, 50 times at most; the gradient goes through every trip."""
    x = ol.layer.data("x", shape=[128])
    y = ol.layer.data("y", shape=[128])
    s = ol.op.full_like(x, value=0.0)
    trips = ol.op.full(shape=(), value=0, dtype="int64")
    loop = ol.while_loop(trips < 50)
    with loop.block():
        after = ol.layer.tanh(ol.layer.fc(s, 128, bias=False, params=["W"]) + x)
        moved = ol.layer.mean(ol.op.abs(after - s))
        loop.carry(s, after)
        loop.carry(trips, trips + 1)
        loop.update_condition((moved >= 1e-3) & (trips + 1 < 50))
    state, count = loop()
    cost = ol.layer.mse(state, y)
    ol.optimizer.SGD(0.005).minimize(cost)
    count.block.program.targets["trips"] = count
    return cost

"""Networks of dense layers."""

import oarlock as ol

__all__ = ["mlp_large", "mlp_small", "mlp_small_logits"]


def mlp_small_logits() -> ol.Var:
    x = ol.layer.data("x", shape=[784])
    return ol.layer.fc(ol.layer.fc(x, 128, act="relu"), 10)


def mlp_small() -> ol.Var:
    """784-128-10, softmax cross entropy over 64 rows, SGD."""
    logits = mlp_small_logits()
    cost = ol.layer.cross_entropy(logits, ol.layer.data("y", shape=[], dtype="int64"))
    ol.optimizer.SGD(0.1).minimize(cost)
    return cost


def mlp_large() -> ol.Var:
    """784-512-512-10, softmax cross entropy over 128 rows, Adam."""
    x = ol.layer.data("x", shape=[784])
    y = ol.layer.data("y", shape=[], dtype="int64")
    hidden = ol.layer.fc(ol.layer.fc(x, 512, act="relu"), 512, act="relu")
    cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 10), y)
    ol.optimizer.Adam(1e-3).minimize(cost)
    return cost

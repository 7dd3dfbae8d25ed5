"""Convolutional networks."""

import oarlock as ol

__all__ = ["lenet", "lenet_logits", "resnet_ish"]


def lenet_logits() -> ol.Var:
    image = ol.layer.data("x", shape=[1, 28, 28])
    hidden = ol.layer.pool2d(ol.layer.conv2d(image, 20, 5), 2)
    hidden = ol.layer.pool2d(ol.layer.conv2d(hidden, 50, 5), 2)
    return ol.layer.fc(ol.layer.fc(ol.layer.flatten(hidden), 500, act="relu"), 10)


def lenet() -> ol.Var:
    """Two convolutions with pools, two dense layers; 64 images, momentum."""
    logits = lenet_logits()
    cost = ol.layer.cross_entropy(logits, ol.layer.data("y", shape=[], dtype="int64"))
    ol.optimizer.Momentum(0.01, 0.9).minimize(cost)
    return cost


def resnet_ish() -> ol.Var:
    """Six convolutions in pairs, each with batch norm, every second one with a shortcut; 32 images, momentum."""
    hidden = ol.layer.data("x", shape=[3, 32, 32])
    y = ol.layer.data("y", shape=[], dtype="int64")
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        first = ol.layer.conv2d(hidden, channels, 3, stride=stride, padding=1, bias=False)
        first = ol.layer.batch_norm(first, act="relu")
        second = ol.layer.conv2d(first, channels, 3, padding=1, bias=False)
        hidden = ol.layer.relu(first + ol.layer.batch_norm(second))
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.global_pool2d(hidden), 10), y)
    ol.optimizer.Momentum(0.01, 0.9).minimize(cost)
    return cost

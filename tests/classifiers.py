"""Two classifiers that several tests train: the digits program of the example, and one small enough to train in a blink."""

from dataclasses import dataclass

import numpy

import oarlock as ol

__all__ = ["Classifier", "digits_classifier", "small_classifier", "small_rows"]


@dataclass
class Classifier:
    """A program, and the variables of it that tests ask for."""

    program: ol.Program
    predict: ol.Var
    cost: ol.Var
    accuracy: ol.Var


def digits_classifier(*, dtype: str = "float32", dropout: float = 0.0, seed: int = 0) -> Classifier:
    """The network of examples/digits.py; with `dropout`, that share of the pooled features is dropped in training."""
    with ol.Program(seed=seed) as program:
        image = ol.layer.data("image", shape=[1, 8, 8], dtype=dtype)
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.conv2d(image, filters=32, size=3, padding=1, act="relu")
        hidden = ol.layer.flatten(ol.layer.pool2d(hidden, size=2))
        if dropout:
            hidden = ol.layer.dropout(hidden, rate=dropout)
        return _classify(program, ol.layer.fc(hidden, 10), label)


def small_classifier(*, seed: int = 0, dropout: float = 0.0) -> Classifier:
    """Three numbers "x" into two classes "label", by one layer."""
    with ol.Program(seed=seed) as program:
        x = ol.layer.data("x", shape=[3])
        label = ol.layer.data("label", shape=[], dtype="int64")
        return _classify(program, ol.layer.fc(ol.layer.dropout(x, rate=dropout) if dropout else x, 2), label)


def _classify(program: ol.Program, logits: ol.Var, label: ol.Var) -> Classifier:
    predict = ol.layer.softmax(logits)
    cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
    return Classifier(program, predict, cost, ol.layer.accuracy(predict, label))


def small_rows(count: int = 10, *, seed: int = 0) -> dict[str, numpy.ndarray]:
    """Rows for `small_classifier`; the class is told by the sign of the first number."""
    x = numpy.random.default_rng(seed).standard_normal((count, 3)).astype("float32")
    return {"x": x, "label": (x[:, 0] > 0).astype("int64")}

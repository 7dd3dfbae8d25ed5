"""Data and first weights of X1 to X6, from `numpy.random.RandomState(2000 + number)`: weights first, in the order in which they stand."""

from collections.abc import Callable

import numpy
from numpy.random import RandomState

__all__ = ["draw"]

Arrays = dict[str, numpy.ndarray]


def draw(name: str) -> tuple[Arrays, dict[str, object]]:
    """The weights by the names of their parameters, and what is fed; of rows of rows, the elements and the row splits."""
    weights, feed = _DRAWS[name](RandomState(2000 + int(name[1:])))
    return weights, feed  # type: ignore[return-value]


def _normal(random: RandomState, *shape: int) -> numpy.ndarray:
    return random.randn(*shape).astype("float32")


def _uniform(random: RandomState, fan: int, *shape: int) -> numpy.ndarray:
    """Within ±1/sqrt(fan)."""
    bound = 1.0 / numpy.sqrt(fan)
    return random.uniform(-bound, bound, shape).astype("float32")


def _dense(random: RandomState, name: str, wide: int, high: int) -> Arrays:
    return {f"{name}.w": _uniform(random, wide, wide, high), f"{name}.b": _uniform(random, wide, high)}


def _norm(name: str, size: int) -> Arrays:
    return {f"{name}.scale": numpy.ones(size, "float32"), f"{name}.bias": numpy.zeros(size, "float32")}


def _minimal_gated_unit(random: RandomState) -> tuple[Arrays, Arrays]:
    shapes = {"Wf": (48, 96), "bf": (96,), "Uf": (96, 96), "Wh": (48, 96), "bh": (96,), "Uh": (96, 96)}
    weights = {name: random.uniform(-0.1, 0.1, shape) for name, shape in shapes.items()}
    return weights, {"x": random.randn(60, 32, 48)}


def _documents(random: RandomState) -> tuple[Arrays, Arrays]:
    weights = {"W": _uniform(random, 64, 32, 192), "b": _uniform(random, 64, 192), "U": _uniform(random, 64, 64, 192)}
    weights |= {"V": _uniform(random, 48, 64, 48), "c": _uniform(random, 48, 48), "R": _uniform(random, 48, 48, 48)}
    weights |= _dense(random, "logits", 48, 4)
    sentences = random.randint(1, 13, 24)
    words = random.randint(1, 31, sentences.sum())
    feed = {f"x.splits.{level}": numpy.cumsum([0, *lengths]).astype("int64") for level, lengths in enumerate((sentences, words))}
    return weights, {"x": _normal(random, words.sum(), 32), **feed, "y": random.randint(0, 4, 24)}


def _one_of_two_networks(random: RandomState) -> tuple[Arrays, Arrays]:
    weights = _dense(random, "mean_0", 64, 256) | _dense(random, "mean_1", 256, 64)
    weights |= {"W": _uniform(random, 128, 64, 128), "b": _uniform(random, 128, 128), "U": _uniform(random, 128, 128, 128)}
    weights |= _dense(random, "loop", 128, 64)
    return weights, {"x": _normal(random, 40, 48, 64), "y": _normal(random, 48, 64), "which": numpy.array(1)}


def _two_directions(random: RandomState) -> tuple[Arrays, Arrays]:
    weights: Arrays = {}
    for name in ("forward", "backward"):
        weights |= {
            f"{name}.W": _uniform(random, 96, 48, 96),
            f"{name}.b": _uniform(random, 96, 96),
            f"{name}.U": _uniform(random, 96, 96, 96),
        }
    weights |= _dense(random, "key", 192, 32) | _dense(random, "score", 32, 1) | _dense(random, "logits", 192, 5)
    return weights, {"x": _normal(random, 50, 32, 48), "y": random.randint(0, 5, 32)}


def _residual_perceptron(random: RandomState) -> tuple[Arrays, Arrays]:
    weights = _dense(random, "first", 64, 192)
    for block in range(4):
        weights |= _norm(f"norm_{block}", 192) | _dense(random, f"up_{block}", 192, 384) | _dense(random, f"down_{block}", 384, 192)
    weights |= _norm("norm_last", 192) | _dense(random, "logits", 192, 10)
    return weights, {"x": _normal(random, 96, 64), "y": random.randint(0, 10, 96)}


def _chain_of_gates(random: RandomState) -> tuple[Arrays, Arrays]:
    return _dense(random, "first", 256, 256), {"x": _normal(random, 4096, 256)}


_DRAWS: dict[str, Callable[[RandomState], tuple[Arrays, Arrays]]] = {
    "X1": _minimal_gated_unit,
    "X2": _documents,
    "X3": _one_of_two_networks,
    "X4": _two_directions,
    "X5": _residual_perceptron,
    "X6": _chain_of_gates,
}

"""Data and first weights, from `numpy.random.RandomState(1000 + number)`: the same numbers for every framework.

Workload Wi draws its weights, then its data, in the order in which they stand here. Matrices are [in, out], filters [out, in, h, w].
I1, I2 and I3 are W1, W3 and W6 with one row of their data.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy
from numpy.random import RandomState

import oarlock as ol

__all__ = ["draw"]

Arrays = dict[str, numpy.ndarray]


def draw(name: str) -> tuple[Arrays, dict[str, object]]:
    """The weights by the names of their parameters, and what is fed."""
    source, one_row = _ONE_ROW.get(name, (name, None))
    random = RandomState(1000 + int(source[1:]))
    weights, feed = _DRAWS[source](random)
    if one_row is not None:
        feed = {"x": numpy.ascontiguousarray(feed["x"][one_row])}  # type: ignore[index]
    return weights, feed


def _normal(random: RandomState, *shape: int) -> numpy.ndarray:
    return random.randn(*shape).astype("float32")


def _uniform(random: RandomState, fan: int, *shape: int) -> numpy.ndarray:
    """Within ±1/sqrt(fan)."""
    bound = 1.0 / numpy.sqrt(fan)
    return random.uniform(-bound, bound, shape).astype("float32")


def _ones(count: int) -> numpy.ndarray:
    return numpy.ones(count, "float32")


def _zeros(count: int) -> numpy.ndarray:
    return numpy.zeros(count, "float32")


def _dense(random: RandomState, number: int, wide: int, high: int) -> Arrays:
    return {f"fc_{number}.w": _uniform(random, wide, wide, high), f"fc_{number}.b": _uniform(random, wide, high)}


def _perceptron(random: RandomState, rows: int, *sizes: int) -> tuple[Arrays, dict[str, object]]:
    weights: Arrays = {}
    for number, (wide, high) in enumerate(pairwise(sizes)):
        weights |= _dense(random, number, wide, high)
    return weights, {"x": _normal(random, rows, sizes[0]), "y": random.randint(0, 10, rows)}


def _lenet(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    weights = {
        "conv2d_0.w": _uniform(random, 25, 20, 1, 5, 5),
        "conv2d_0.b": _uniform(random, 25, 20),
        "conv2d_1.w": _uniform(random, 500, 50, 20, 5, 5),
        "conv2d_1.b": _uniform(random, 500, 50),
        **_dense(random, 0, 800, 500),
        **_dense(random, 1, 500, 10),
    }
    return weights, {"x": _normal(random, 64, 1, 28, 28), "y": random.randint(0, 10, 64)}


def _resnet(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    weights: Arrays = {}
    channels = (3, 16, 16, 32, 32, 64, 64)
    for number, (before, after) in enumerate(pairwise(channels)):
        filters = random.randn(after, before, 3, 3) * numpy.sqrt(2.0 / (9 * before))
        weights[f"conv2d_{number}.w"] = filters.astype("float32")
        weights[f"batch_norm_{number}.scale"] = _ones(after)
        weights[f"batch_norm_{number}.bias"] = _zeros(after)
    weights |= _dense(random, 0, 64, 10)
    return weights, {"x": _normal(random, 32, 3, 32, 32), "y": random.randint(0, 10, 32)}


def _cell(random: RandomState, wide: int, high: int, gates: int) -> Arrays:
    return {
        "W": _uniform(random, high, wide, gates * high),
        "U": _uniform(random, high, high, gates * high),
        "b": _uniform(random, high, gates * high),
    }


def _recurrent(random: RandomState, gates: int) -> tuple[Arrays, dict[str, object]]:
    return _cell(random, 128, 256, gates), {"x": _normal(random, 100, 64, 128)}


def _lstm_layer(_: RandomState) -> tuple[Arrays, dict[str, object]]:
    """The weights and data of W6, under the names of the layer."""
    weights, feed = draw("W6")
    return {f"lstm_0.{name.lower()}": value for name, value in weights.items()}, feed


def _gated(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    wide, high = 64, 128
    weights = {name: _uniform(random, high, wide, high) for name in ("Wf", "Wh", "P")}
    weights |= {name: _uniform(random, high, high, high) for name in ("Uf", "Uh")}
    weights |= {name: _uniform(random, high, high) for name in ("bf", "bh")}
    for name in ("norm_f", "norm_h"):
        weights |= {f"{name}.scale": _ones(high), f"{name}.bias": _zeros(high)}
    return weights, {"x": _normal(random, 50, 32, wide)}


def _characters(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    weights = {"embedding_0.w": _normal(random, 96, 128), **_cell(random, 128, 256, 3)}
    weights |= {"logits.w": _uniform(random, 256, 256, 96), "logits.b": _uniform(random, 256, 96)}
    return weights, {"x": random.randint(0, 96, (64, 32)), "y": random.randint(0, 96, (64, 32))}


def _transformer(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    wide, high, length, symbols = 256, 1024, 128, 96
    weights = {
        "embedding_0.w": (_normal(random, symbols, wide) * 0.02).astype("float32"),
        "positions": (_normal(random, length, wide) * 0.02).astype("float32"),
    }
    for block in range(2):
        for number, (size_in, size_out) in enumerate(((wide, 3 * wide), (wide, wide), (wide, high), (high, wide))):
            if number in (0, 2):
                norm = f"layer_norm_{2 * block + number // 2}"
                weights |= {f"{norm}.scale": _ones(wide), f"{norm}.bias": _zeros(wide)}
            weights |= _dense(random, 4 * block + number, size_in, size_out)
    weights |= {"layer_norm_4.scale": _ones(wide), "layer_norm_4.bias": _zeros(wide)}
    weights |= _dense(random, 8, wide, symbols)
    return weights, {"x": random.randint(0, symbols, (8, length)), "y": random.randint(0, symbols, (8, length))}


def _two_ways(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    weights: Arrays = {}
    shapes = ((64, 256), (256, 64), (64, 512), (512, 512), (512, 64))  # two layers for some rows, three for the others
    for number, (wide, high) in enumerate(shapes):
        weights |= _dense(random, number, wide, high)
    return weights, {"x": _normal(random, 256, 64), "y": _normal(random, 256, 64)}


def _fixed_point(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    weights = {"W": (random.randn(128, 128) * (0.85 / numpy.sqrt(128))).astype("float32")}
    return weights, {"x": (random.randn(64, 128) * 0.5).astype("float32"), "y": _normal(random, 64, 128)}


def _sequences(random: RandomState) -> tuple[Arrays, dict[str, object]]:
    """Lengths with a heavy tail, from 5 to 200, both of which occur."""
    rows, wide, high = 64, 64, 128
    lengths = numpy.clip(numpy.round(numpy.exp(random.randn(rows) * 0.9 + numpy.log(22.0))), 5, 200).astype("int64")
    lengths[:2] = 200, 5
    padded = _normal(random, 200, rows, wide)  # time first
    weights = _cell(random, wide, high, 3)
    weights |= {"logits.w": _uniform(random, high, high, 2), "logits.b": _uniform(random, high, 2)}
    return weights, {"x": ol.Ragged.from_padded(padded.swapaxes(0, 1), lengths), "y": random.randint(0, 2, rows)}


_DRAWS: dict[str, Callable[[RandomState], tuple[Arrays, dict[str, object]]]] = {
    "W1": lambda random: _perceptron(random, 64, 784, 128, 10),
    "W2": lambda random: _perceptron(random, 128, 784, 512, 512, 10),
    "W3": _lenet,
    "W4": _resnet,
    "W5": lambda random: _recurrent(random, 1),
    "W6": lambda random: _recurrent(random, 4),
    "W7": _lstm_layer,
    "W8": _gated,
    "W9": _characters,
    "W10": _transformer,
    "W11": _two_ways,
    "W12": _fixed_point,
    "W13": _sequences,
}
_ONE_ROW = {"I1": ("W1", slice(1)), "I2": ("W3", slice(1)), "I3": ("W6", (slice(None), slice(1)))}

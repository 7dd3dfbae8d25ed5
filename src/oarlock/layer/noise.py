"""Noise and dropout layers, active in training only: Gaussian noise, dropout of channels, alpha dropout."""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater, not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.shape import known_shape
from oarlock.op.creation import full_batch_size_like, full_like
from oarlock.op.elementwise import add, multiply
from oarlock.op.manipulation import reshape
from oarlock.op.randomness import dropout, random_normal_like
from oarlock.registry.creator import require_type

__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gaussian_dropout", "gaussian_noise"]


def gaussian_noise(x: Var, deviation: float, *, name: str | None = None) -> Var:
    """In training, add normal noise with mean 0 and the given standard deviation; otherwise return ``x``: float[...s].

    The gradient passes unchanged. Raises ArgumentError for a negative deviation.

        y = ol.layer.gaussian_noise(rows, 0.1)
    """
    x, number = require_type(x, "gaussian_noise: x"), as_python(deviation)
    if not isinstance(number, int | float) or not 0.0 <= number < math.inf:
        raise ArgumentError(
            f"gaussian_noise: deviation must be a non-negative number, not {deviation!r:.60}", location=here(), given=[x.describe()]
        )
    with undone_on_error(x.block.program):
        noise = random_normal_like(x, deviation=float(number), dtype=x.dtype)
        return add(x, where(_is_training(x), noise, constant_like(0.0, x)), name=name)


def gaussian_dropout(x: Var, rate: float, *, name: str | None = None) -> Var:
    """In training, multiply by normal noise with mean 1 and variance ``rate / (1 - rate)``; otherwise return ``x``: float[...s].

    Mean and variance match those of `dropout` (Srivastava et al., 2014, section 10). Raises ArgumentError for a rate outside [0, 1).

        y = ol.layer.gaussian_dropout(rows, 0.2)
    """
    x, number = require_type(x, "gaussian_dropout: x"), as_python(rate)
    if not isinstance(number, int | float) or not 0.0 <= number < 1.0:
        raise ArgumentError(f"gaussian_dropout: rate must be in [0, 1), not {rate!r:.60}", location=here(), given=[x.describe()])
    with undone_on_error(x.block.program):
        noise = random_normal_like(x, mean=1.0, deviation=math.sqrt(number / (1.0 - number)), dtype=x.dtype)
        return multiply(x, where(_is_training(x), noise, constant_like(1.0, x)), name=name)


def _is_training(x: Var) -> Var:
    """Return whether the run is training, found by applying dropout to one number: bool[]."""
    one = constant_like(1.0, x)
    return not_equal(dropout(one, rate=0.5), one)


_SELU_FLOOR = -1.7580993408473766  # limit of selu at minus infinity: -scale * alpha


def dropout1d(x: Var, rate: float = 0.5, *, name: str | None = None) -> Var:
    """In training, zero each channel of each signal with probability `rate`, and divide the others by ``1 - rate``: float[n c w].

    Raises ShapeError for an input of another rank, ArgumentError for a rate outside [0, 1) (Tompson et al., 2015).

        y = ol.layer.dropout1d(signal, 0.2)
    """
    return _by_channel(x, rate, 1, name)


def dropout2d(x: Var, rate: float = 0.5, *, name: str | None = None) -> Var:
    """In training, zero each channel of each image with probability `rate`, as `dropout1d`: float[n c h w].

    y = ol.layer.dropout2d(image, 0.2)
    """
    return _by_channel(x, rate, 2, name)


def dropout3d(x: Var, rate: float = 0.5, *, name: str | None = None) -> Var:
    """In training, zero each channel of each volume with probability `rate`, as `dropout1d`: float[n c d h w].

    y = ol.layer.dropout3d(volume, 0.2)
    """
    return _by_channel(x, rate, 3, name)


def _by_channel(x: Var, rate: float, axes: int, name: str | None) -> Var:
    kind = f"dropout{axes}d"
    x = require_type(x, f"{kind}: x")
    if x.ndim != axes + 2:
        names = {1: "n c w", 2: "n c h w", 3: "n c d h w"}[axes]
        raise ShapeError(f"{kind}: x is float[{names}], not {x.type_text}", location=here(), given=[x.describe()])
    with undone_on_error(x.block.program):
        return multiply(x, _kept(x, rate), name=name)


def alpha_dropout(x: Var, rate: float = 0.5, *, name: str | None = None) -> Var:
    """In training, drop elements of selu activations with probability `rate`, preserving mean 0 and variance 1: float[...s].

    Dropped elements are set to selu's lower limit, and then all elements are scaled and shifted (Klambauer et al., 2017). Other runs return
    ``x`` unchanged. Raises ArgumentError.

        y = ol.layer.alpha_dropout(ol.op.selu(rows), 0.1)
    """
    x = require_type(x, "alpha_dropout: x")
    with undone_on_error(x.block.program):
        return _with_moments(x, dropout(full_like(x, value=1.0, dtype=x.dtype), rate=rate), rate, name)


def feature_alpha_dropout(x: Var, rate: float = 0.5, *, name: str | None = None) -> Var:
    """In training, apply `alpha_dropout` to whole channels: float[n c ...s]. Raises ShapeError if `x` has no channels, ArgumentError.

    y = ol.layer.feature_alpha_dropout(image, 0.1)
    """
    x = require_type(x, "feature_alpha_dropout: x")
    if len(x.shape or ()) < 2:
        raise ShapeError(f"feature_alpha_dropout: x is float[n c ...], not {x.type_text}", location=here(), given=[x.describe()])
    with undone_on_error(x.block.program):
        return _with_moments(x, _kept(x, rate), rate, name)


def _kept(x: Var, rate: float) -> Var:
    """Return, for each channel, 0 or 1 / (1 - rate) in training and 1 otherwise, in a shape that broadcasts to that of `x`."""
    n, _, *sizes = known_shape(x, "dropout")
    channels = require_number(x.shape, 1, "dropout of channels", x)
    ones = full_batch_size_like(x, shape=(channels,), value=1.0, dtype=x.dtype)
    return reshape(dropout(ones, rate=rate), shape=(n, channels, *(1 for _ in sizes)))


def _with_moments(x: Var, kept: Var, rate: float, name: str | None) -> Var:
    """Return ``a x + b`` for kept elements, ``a floor + b`` for dropped ones, and `x` itself if nothing is dropped."""
    if not 0.0 <= rate < 1.0:
        raise ArgumentError(f"alpha dropout: rate must be in [0, 1), not {rate!r:.60}", location=here())
    scale = 1.0 / math.sqrt((1.0 - rate) * (1.0 + rate * _SELU_FLOOR**2))
    shift = -scale * rate * _SELU_FLOOR
    number = [constant_like(value, x) for value in (0.0, 1.0, scale, shift, scale * _SELU_FLOOR + shift)]
    in_training = where(greater(kept, number[0]), multiply(x, number[2]) + number[3], number[4])
    return where(equal(kept, number[1]), x, in_training, name=name)

"""How parameters start. Each function returns a rule from a parameter's shape to its initializer."""

import math
from collections.abc import Callable

from oarlock.ir.var import Initializer
from oarlock.suggestions import no_attribute

__all__ = ["Rule", "constant", "kaiming", "normal", "uniform", "xavier"]

Rule = Callable[[tuple[int, ...]], Initializer]


def constant(value: float) -> Rule:
    """Every element `value`."""
    return lambda shape: Initializer("constant", {"value": float(value)})


def uniform(low: float, high: float) -> Rule:
    """Evenly spread over `low` to `high`."""
    return lambda shape: Initializer("uniform", {"low": float(low), "high": float(high)})


def normal(mean: float = 0.0, deviation: float = 1.0) -> Rule:
    """Normal, of this mean and standard deviation."""
    return lambda shape: Initializer("normal", {"mean": float(mean), "deviation": float(deviation)})


def xavier() -> Rule:
    """Uniform, so that signals keep their variance both ways (Glorot and Bengio, 2010, equation 16)."""

    def rule(shape: tuple[int, ...]) -> Initializer:
        fan_in, fan_out = _fans(shape)
        return uniform(-math.sqrt(6.0 / (fan_in + fan_out)), math.sqrt(6.0 / (fan_in + fan_out)))(shape)

    return rule


def kaiming() -> Rule:
    """Normal, so that signals keep their variance through relu (He et al., 2015, equation 10)."""
    return lambda shape: normal(0.0, math.sqrt(2.0 / _fans(shape)[0]))(shape)


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many inputs and outputs an element's row and column have: [k, n] of a matrix, [f, c, kh, kw] of filters."""
    if len(shape) < 2:
        count = max(math.prod(shape), 1)
        return count, count
    if len(shape) == 2:
        k, n = shape
        return k, n
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)

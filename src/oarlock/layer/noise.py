"""Gaussian noise and Gaussian dropout, active in training only."""

import math

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.elementwise import add, multiply
from oarlock.op.randomness import dropout, random_normal_like
from oarlock.registry.creator import require_type

__all__ = ["gaussian_dropout", "gaussian_noise"]


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

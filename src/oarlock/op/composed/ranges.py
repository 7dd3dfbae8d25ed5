"""Evenly spaced numbers, and window functions for signals."""

import math

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.powers import power
from oarlock.op.told_shape import arange
from oarlock.op.trigonometry import cos

__all__ = ["blackman_window", "hamming_window", "hann_window", "linspace", "logspace"]


def linspace(start: float, stop: float, count: int, *, dtype: DType | str = DType.FLOAT32) -> Var:
    """``count`` evenly spaced numbers from ``start`` to ``stop``, both included; ``start`` alone for one. Raises ArgumentError."""
    if count < 0:
        raise ArgumentError(f"linspace: count must be at least 0, not {count}", location=here())
    if count < 2:
        return full(shape=(count,), value=float(start), dtype=dtype)
    numbers = cast(arange([], stop=(count,)), dtype=DType.FLOAT64)
    step = (stop - start) / (count - 1)
    rising = add(multiply(numbers, constant_like(step, numbers)), constant_like(start, numbers))
    behind = subtract(
        constant_like(stop, numbers), multiply(subtract(constant_like(count - 1, numbers), numbers), constant_like(step, numbers))
    )
    return cast(where(less(numbers, constant_like(count // 2, numbers)), rising, behind), dtype=dtype)  # exact at both ends


def logspace(start: float, stop: float, count: int, *, base: float = 10.0, dtype: DType | str = DType.FLOAT32) -> Var:
    """``base`` to the powers of `linspace`."""
    exponents = linspace(start, stop, count, dtype=DType.FLOAT64)
    return cast(power(constant_like(base, exponents), exponents), dtype=dtype)


def _cosines(count: int, weights: tuple[float, ...], periodic: bool, dtype: DType | str, what: str) -> Var:
    """Return the sum of ``(-1)**k a_k cos(2 pi k n / N)``, with ``N`` the count, minus 1 for a symmetric window."""
    if count < 0:
        raise ArgumentError(f"{what}: count must be at least 0, not {count}", location=here())
    if count == 1:
        return full(shape=(1,), value=1.0, dtype=dtype)
    numbers = cast(arange([], stop=(count,)), dtype=DType.FLOAT64)
    around = multiply(numbers, constant_like(2.0 * math.pi / max(1, count if periodic else count - 1), numbers))
    total = full(shape=(count,), value=weights[0], dtype=DType.FLOAT64)
    for order, weight in enumerate(weights[1:], start=1):
        wave = cos(multiply(around, constant_like(order, around)))
        total = add(total, multiply(wave, constant_like(weight * (-1) ** order, wave)))
    return cast(total, dtype=dtype)


def hann_window(count: int, *, periodic: bool = True, dtype: DType | str = DType.FLOAT32) -> Var:
    """The Hann window, ``(1 - cos(2 pi n / N)) / 2`` for ``count`` numbers n, with ``N = count`` if it is periodic, else ``count - 1``."""
    return _cosines(count, (0.5, 0.5), periodic, dtype, "hann_window")


def hamming_window(count: int, *, periodic: bool = True, dtype: DType | str = DType.FLOAT32) -> Var:
    """The Hamming window, ``0.54 - 0.46 cos(2 pi n / N)``, with ``N`` as in `hann_window`."""
    return _cosines(count, (0.54, 0.46), periodic, dtype, "hamming_window")


def blackman_window(count: int, *, periodic: bool = True, dtype: DType | str = DType.FLOAT32) -> Var:
    """The Blackman window, ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``, with ``N`` as in `hann_window`."""
    return _cosines(count, (0.42, 0.5, 0.08), periodic, dtype, "blackman_window")

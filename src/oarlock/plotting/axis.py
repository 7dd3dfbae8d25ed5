"""Axes: a range, the positions of values on it, and its ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

__all__ = ["Axis", "format_number"]


@dataclass(frozen=True)
class Axis:
    """A range from `low` to `high`, which is greater than `low`. Both are above 0 on a logarithmic axis."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[numpy.ndarray], *, log: bool = False, margin: float = 0.05) -> "Axis":
        """Return an axis for the range of all `values`, which must be finite, with a `margin` on both sides. It is never empty."""
        every = numpy.concatenate([numpy.empty(0), *values])
        every = every[every > 0] if log else every
        if not len(every):
            return cls(1.0, 10.0, True) if log else cls(0.0, 1.0)
        low, high = float(every.min()), float(every.max())
        if log:
            low, high = math.log10(low), math.log10(high)
        if high - low <= 1e-9 * max(abs(low), abs(high)) or high - low < 1e-200:
            wide = 0.5 if log or not low else max(abs(low) * 0.1, 1e-190)
            low, high = low - wide, high + wide
        else:
            low, high = low - margin * (high - low), high + margin * (high - low)
        return cls(10.0**low, 10.0**high, True) if log else cls(low, high)

    def shows(self, values: numpy.ndarray) -> numpy.ndarray:
        """Return which finite `values` can be shown on the axis: bool[n]."""
        return values > 0 if self.log else numpy.ones(len(values), bool)

    def place(self, values: numpy.ndarray) -> numpy.ndarray:
        """Return the positions of `values` from 0 (low end) to 1 (high end): float64[n]. Values outside the range are clipped."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = numpy.log10(values), math.log10(low), math.log10(high)
        return numpy.clip((values - low) / (high - low), 0.0, 1.0)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Return about `count` round values in the range with their labels; at least one, if the range has a round value."""
        return self._log_ticks(count) if self.log else self._linear_ticks(count)

    def _linear_ticks(self, count: int) -> list[tuple[float, str]]:
        rough = (self.high - self.low) / max(count, 1)
        scale = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * scale for factor in (1, 2, 5, 10) if factor * scale >= rough * 0.7)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        return [(value, _tick(value, step)) for value in values]

    def _log_ticks(self, count: int) -> list[tuple[float, str]]:
        low, high = math.log10(self.low), math.log10(self.high)
        decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        if len(decades) < 2:  # less than about a decade
            factors = [(1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9)][high - low < 0.5]
            values = [factor * 10.0**decade for decade in range(math.floor(low), math.ceil(high) + 1) for factor in factors]
            values = [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]
            if len(values) < 2:
                return Axis(self.low, self.high)._linear_ticks(count)
        else:
            every = math.ceil(len(decades) / (count + 2))
            values = [10.0**decade for decade in decades if decade % every == 0]
        return [(value, format_number(value)) for value in values]


def format_number(value: float) -> str:
    """Format a number with about four digits: 0.1234, 12,345, 1.2e-05, nan."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.4g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _tick(value: float, step: float) -> str:
    """Format a tick with enough digits to distinguish it from the next one."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or step < 1e-5:
        return f"{value:.{min(max(0, math.floor(math.log10(abs(value))) - math.floor(math.log10(step))), 12)}e}"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"

"""Charts of one metric: its curves, smoothed and thinned for drawing, and notes below them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from oarlock.errors import ArgumentError
from oarlock.plotting.axis import Axis

__all__ = ["Chart", "Curve", "drawn_in", "joined", "require_smooth"]

_LARGEST = 1e150  # the largest value to draw: differences of larger ones are infinite
_POINTS = 800  # the most points of a curve: more than a chart is wide, in pixels


@dataclass(frozen=True)
class Curve:
    """The values of a metric, float64[n], at increasing steps, float64[n], of a run and a `part` of its data."""

    run: str
    part: str
    steps: numpy.ndarray
    values: numpy.ndarray

    @property
    def is_finite(self) -> numpy.ndarray:
        """A mask of the values that can be drawn: bool[n]."""
        return numpy.abs(self.values) < _LARGEST  # false for NaN too

    def smoothed(self, weight: float) -> "Curve":
        """Return the curve as an exponential moving average with decay `weight`, corrected for the missing history at the start.

        Non-finite values are unchanged, and do not affect others. Validation curves, which have few points, are returned unchanged.
        """
        if not weight or self.part != "training":
            return self
        values, total, norm = numpy.full(len(self.values), numpy.nan), 0.0, 0.0
        for place in numpy.flatnonzero(self.is_finite):
            total = weight * total + (1 - weight) * float(self.values[place])
            norm = weight * norm + (1 - weight)
            values[place] = total / norm
        return Curve(self.run, self.part, self.steps, numpy.where(self.is_finite, values, self.values))

    def thinned(self, points: int = _POINTS) -> "Curve":
        """Return a curve of about `points` points: the minimum and maximum of each piece, so that no peak is lost, and the gaps."""
        if len(self.steps) <= points:
            return self
        kept: list[int] = []
        drawn = self.is_finite
        for piece in numpy.array_split(numpy.arange(len(self.steps)), max(1, points // 2)):
            finite = piece[drawn[piece]]
            if len(finite) < len(piece):
                kept.append(int(piece[~drawn[piece]][0]))
            if len(finite):
                kept += [int(finite[numpy.argmin(self.values[finite])]), int(finite[numpy.argmax(self.values[finite])])]
        chosen = numpy.unique([0, *kept, len(self.steps) - 1])
        return Curve(self.run, self.part, self.steps[chosen], self.values[chosen])

    def pieces(self, axis: Axis) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
        """Return the steps and values of each piece without gaps, limited to values that `axis` can show."""
        shown = numpy.flatnonzero(self.is_finite & axis.shows(self.values))
        cuts = numpy.flatnonzero(numpy.diff(shown) > 1) + 1
        return [(self.steps[piece], self.values[piece]) for piece in numpy.split(shown, cuts) if len(piece)]


@dataclass(frozen=True)
class Chart:
    """The curves of one metric. `log` requests a logarithmic value axis, `smooth` the smoothing of training curves."""

    label: str
    curves: tuple[Curve, ...]
    log: bool = False
    smooth: float = 0.0

    @property
    def is_log(self) -> bool:
        """Whether the value axis is logarithmic, which needs a value above 0."""
        return self.log and any((curve.values[curve.is_finite] > 0).any() for curve in self.curves)

    @cached_property
    def lines(self) -> list[Curve]:
        """The curves to draw."""
        return [curve.smoothed(self.smooth).thinned() for curve in self.curves]

    @cached_property
    def behind(self) -> list[Curve | None]:
        """The unsmoothed curve to draw behind each of `lines`, None for lines without smoothing."""
        smooths = [bool(self.smooth) and curve.part == "training" and len(curve.steps) > 1 for curve in self.curves]
        return [curve.thinned() if smooth else None for curve, smooth in zip(self.curves, smooths, strict=True)]

    @cached_property
    def steps(self) -> Axis:
        """The step axis."""
        return Axis.around([curve.steps for curve in self.curves], margin=0.0)

    @cached_property
    def values(self) -> Axis:
        """The value axis. It covers the smoothed lines, and all but the outliers of the curves behind them."""
        found = [curve.values[curve.is_finite] for curve in self.lines]
        found += [_without_tails(curve.values[curve.is_finite]) for curve in self.behind if curve is not None]
        return Axis.around(found, log=self.is_log)

    @property
    def notes(self) -> list[str]:
        """Sentences about values that the chart cannot show."""
        notes = []
        for curve in self.curves:
            missing = numpy.flatnonzero(~curve.is_finite)
            name = f"{curve.run}, {curve.part}" if len({curve.run for curve in self.curves}) > 1 else curve.part
            if len(missing):
                value = curve.values[missing[0]]
                count = f"{len(missing)} of {len(curve.values)} values are" if len(curve.values) > 1 else "the value is"
                notes.append(f"{name}: {count} not finite, the first {value:g} at step {curve.steps[missing[0]]:.0f}")
            below = int((curve.values[curve.is_finite] <= 0).sum()) if self.is_log else 0
            if below:
                notes.append(f"{name}: {below} of {len(curve.values)} values are not above 0, and cannot be shown on a logarithmic axis")
        if self.log and not self.is_log:
            notes.append("no value is above 0, so the axis is linear")
        return notes


def require_smooth(smooth: float) -> float:
    """Return `smooth` as a float from 0 to less than 1. Raises ArgumentError."""
    if isinstance(smooth, bool) or not isinstance(smooth, int | float) or not 0 <= smooth < 1:
        raise ArgumentError(f"smooth must be from 0 to less than 1, not {smooth!r:.60}", hint="use 0.9 to average over about ten steps")
    return float(smooth)


def _without_tails(values: numpy.ndarray) -> numpy.ndarray:
    """Return `values` without outliers, which would compress all others: the range from the 1st to the 99th percentile."""
    return values if len(values) < 20 else numpy.percentile(values, [1, 99])


def drawn_in(charts: Sequence[Chart]) -> list[tuple[str, str]]:
    """Return the distinct runs and parts of the curves."""
    return list(dict.fromkeys((curve.run, curve.part) for chart in charts for curve in chart.curves))


def joined(charts: Sequence[Chart]) -> tuple[list[str], list[str]]:
    """Return the runs and the parts in all `charts`, in order of appearance."""
    curves = [curve for chart in charts for curve in chart.curves]
    return list(dict.fromkeys(curve.run for curve in curves)), list(dict.fromkeys(curve.part for curve in curves))

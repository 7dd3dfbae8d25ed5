"""`plot`: the curves of runs, from their folders or their results."""

import os
from collections.abc import Sequence

import numpy

from oarlock.errors import ArgumentError
from oarlock.plotting.chart import Chart, Curve, require_smooth
from oarlock.plotting.plot import Plot
from oarlock.training.records import EpochRecord, ValidationRecord
from oarlock.training.run_record import RunRecord

__all__ = ["SMOOTH", "curves_of", "plot", "plot_runs"]

SMOOTH = 0.6  # the weight of the values before, where nobody says another


def plot(
    *runs: "str | os.PathLike[str] | RunRecord",
    metrics: Sequence[str] = (),
    log: bool = False,
    smooth: float = SMOOTH,
) -> Plot:
    """The curves of runs that are kept in folders, a chart for each metric: of training step by step, of validation epoch by epoch.

        ol.training.plot("runs/one", "runs/two").save("losses.svg")

    A run may be finished, still running, or killed. `metrics` are the labels to draw, all of them unless given; `log` makes the axis of
    values logarithmic. `smooth` is a weight from 0 to less than 1: curves of training are drawn as averages, in which each value before
    weighs so much less than the next, and what was measured is drawn behind them. The plot prints as text, a notebook shows it, and `save`
    writes a PNG, SVG or PDF. Raises ArgumentError, MissingFileError, FormatError, ReadError or LimitError.
    """
    if not runs:
        raise ArgumentError("plot takes the folders of one or more runs", hint='ol.training.plot("runs/digits")')
    return plot_runs([run if isinstance(run, RunRecord) else RunRecord.read(run) for run in runs], metrics=metrics, log=log, smooth=smooth)


def plot_runs(runs: Sequence[RunRecord], *, metrics: Sequence[str] = (), log: bool = False, smooth: float = SMOOTH) -> Plot:
    """The curves of runs that were read. Raises ArgumentError."""
    named: dict[str, RunRecord] = {}
    for run in runs:
        name = run.name if sum(other.name == run.name for other in runs) == 1 else str(run.path)
        named.setdefault(name, run)
    found: dict[str, list[Curve]] = {}
    for name, run in named.items():
        for label, curves in curves_of(name, run.log.measured, run.validations or run.history).items():
            found.setdefault(label, []).extend(curves)
    return _plot(found, metrics, log, smooth)


def plot_history(
    history: Sequence[EpochRecord], validations: Sequence[ValidationRecord] = (), *, metrics: Sequence[str] = (), log: bool = False
) -> Plot:
    """The curves of the epochs of one run. Raises ArgumentError."""
    measured = {
        label: _arrays([(record.step or record.epoch, record.training[label]) for record in history if label in record.training])
        for label in dict.fromkeys(label for record in history for label in record.training)
    }
    return _plot(curves_of("run", measured, validations or history), metrics, log, 0.0)


def curves_of(
    name: str, measured: dict[str, tuple[numpy.ndarray, numpy.ndarray]], validated: Sequence[EpochRecord | ValidationRecord]
) -> dict[str, list[Curve]]:
    """The curves of a run by the labels of its metrics: its training, then its validation."""
    found = {label: [Curve(name, "training", steps, values)] for label, (steps, values) in measured.items() if len(steps)}
    for label in dict.fromkeys(label for record in validated for label in record.validation):
        points = [(record.step or record.epoch, record.validation[label]) for record in validated if label in record.validation]
        found.setdefault(label, []).append(Curve(name, "validation", *_arrays(points)))
    return found


def _arrays(points: Sequence[tuple[float, float]]) -> tuple[numpy.ndarray, numpy.ndarray]:
    return numpy.array([step for step, _ in points], float), numpy.array([value for _, value in points], float)


def _plot(found: dict[str, list[Curve]], metrics: Sequence[str], log: bool, smooth: float) -> Plot:
    smooth = require_smooth(smooth)
    metrics = [metrics] if isinstance(metrics, str) else list(metrics)
    if not found:
        raise ArgumentError("nothing was measured yet that could be drawn", hint="the first step is logged when it is over")
    for label in metrics:
        if label not in found:
            raise ArgumentError(f'nothing was measured that is called "{label}"', given=[f"there are: {', '.join(found)}"])
    return Plot(tuple(Chart(label, tuple(found[label]), log, smooth) for label in metrics or found))

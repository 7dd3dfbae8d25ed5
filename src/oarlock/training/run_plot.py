"""`plot`: the curves of runs, from run folders or results."""

import os
from collections.abc import Sequence

import numpy

from oarlock.errors import ArgumentError
from oarlock.plotting.chart import Chart, Curve, require_smooth
from oarlock.plotting.plot import Plot
from oarlock.training.records import EpochRecord, ValidationRecord
from oarlock.training.run_record import RunRecord

__all__ = ["SMOOTH", "curves_of", "plot", "plot_runs"]

SMOOTH = 0.6  # the default weight of previous values


def plot(
    *runs: "str | os.PathLike[str] | RunRecord",
    metrics: Sequence[str] = (),
    log: bool = False,
    smooth: float = SMOOTH,
) -> Plot:
    """Plot the curves of run folders, one chart per metric: training step by step, validation epoch by epoch.

        ol.training.plot("runs/one", "runs/two").save("losses.svg")

    A run may be finished, running or interrupted. `metrics` selects labels (default: all); `log` makes the value axis logarithmic.
    `smooth`, from 0 to less than 1, draws training curves as exponential moving averages with this decay, above the unsmoothed values. The
    plot prints as text, displays in a notebook, and saves as PNG, SVG or PDF. Raises ArgumentError, MissingFileError, FormatError,
    ReadError or LimitError.
    """
    if not runs:
        raise ArgumentError("plot needs one or more run folders", hint='ol.training.plot("runs/digits")')
    return plot_runs([run if isinstance(run, RunRecord) else RunRecord.read(run) for run in runs], metrics=metrics, log=log, smooth=smooth)


def plot_runs(runs: Sequence[RunRecord], *, metrics: Sequence[str] = (), log: bool = False, smooth: float = SMOOTH) -> Plot:
    """Plot the curves of runs. Raises ArgumentError."""
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
    """Plot the curves of the epochs of one run. Raises ArgumentError."""
    measured = {
        label: _arrays([(record.step or record.epoch, record.training[label]) for record in history if label in record.training])
        for label in dict.fromkeys(label for record in history for label in record.training)
    }
    return _plot(curves_of("run", measured, validations or history), metrics, log, 0.0)


def curves_of(
    name: str, measured: dict[str, tuple[numpy.ndarray, numpy.ndarray]], validated: Sequence[EpochRecord | ValidationRecord]
) -> dict[str, list[Curve]]:
    """Return the curves of a run by metric label: training, then validation."""
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
        raise ArgumentError("there are no metrics to draw yet", hint="wait until the first step is finished")
    for label in metrics:
        if label not in found:
            raise ArgumentError(f'no metric is called "{label}"', given=[f"metrics: {', '.join(found)}"])
    return Plot(tuple(Chart(label, tuple(found[label]), log, smooth) for label in metrics or found))

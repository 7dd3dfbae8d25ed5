"""The metrics of epochs, and the result of a run."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from oarlock.drawing.table import table_html
from oarlock.ir.program import Program
from oarlock.plotting.plot import Plot

if TYPE_CHECKING:
    from oarlock.runtime.scope import Scope

__all__ = ["EpochRecord", "TrainingResult", "ValidationRecord"]

_SHOWN = 20  # epochs in a notebook


class _Record:
    """The metrics at some step."""

    @cached_property
    def text(self) -> str:
        """The record as JSON, computed once."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]


@dataclass(frozen=True)
class EpochRecord(_Record):
    """The metrics of one epoch by label: means over rows, and the values of metrics. `validation` is empty without validation data.

    `step` is the last step of the epoch. An epoch that was interrupted and resumed is averaged over all its rows, except in checkpoints of
    earlier versions, which did not store the sums.
    """

    epoch: int
    training: dict[str, float]
    validation: dict[str, float]
    step: int = 0

    @property
    def values(self) -> dict[str, float]:
        """All metrics by label; those of the validation are called "validation ..."."""
        return self.training | {f"validation {label}": value for label, value in self.validation.items()}


@dataclass(frozen=True)
class ValidationRecord(_Record):
    """The metrics on the validation data after `step`, in an epoch, by label."""

    epoch: int
    validation: dict[str, float]
    step: int

    @property
    def values(self) -> dict[str, float]:
        """The metrics by labels such as "validation loss"."""
        return {f"validation {label}": value for label, value in self.validation.items()}


@dataclass
class TrainingResult:
    """The result of training: the training program, the scope of its parameters, and the metrics of each epoch.

    `ol.save_model(result, path)` saves it to be continued; `ol.save_model(predict, result.parameters, path)` saves the program for
    prediction. `steps` counts all steps of the program, including those before resuming. `validations` are the records of
    `validate_every`.
    """

    program: Program
    parameters: "Scope"
    history: list[EpochRecord] = field(default_factory=list)
    steps: int = 0
    validations: list[ValidationRecord] = field(default_factory=list)

    def plot(self, path: "str | os.PathLike[str] | None" = None, *, metrics: Sequence[str] = (), log: bool = False) -> Plot:
        """Plot the curves of `history`, one chart per metric, with training and validation together; write it to `path`, if given.

            print(result.plot())
            result.plot("losses.svg", log=True)

        `metrics` selects labels (default: all); `log` makes the value axis logarithmic. The plot prints as text, displays in a notebook,
        and saves as PNG, SVG or PDF. Raises ArgumentError if no epoch is finished, and the errors of `Plot.save`.
        """
        from oarlock.training.run_plot import plot_history  # a circular import

        drawn = plot_history(self.history, self.validations, metrics=metrics, log=log)
        if path is not None:
            drawn.save(path)
        return drawn

    def _repr_html_(self) -> str:
        """Return a table of the last epochs and their curves, for notebooks."""
        labels = list(dict.fromkeys(label for record in self.history for label in record.values))
        shown = self.history[-_SHOWN:]
        rows = [
            [
                f"{record.epoch:,}",
                f"{record.step:,}",
                *(f"{record.values[label]:.4g}" if label in record.values else "" for label in labels),
            ]
            for record in shown
        ]
        earlier = len(self.history) - len(shown)
        note = f"{self.steps:,} steps" + (f", {earlier:,} earlier epochs" if earlier else "")
        return table_html(["epoch", "step", *labels], rows, numbers=range(2 + len(labels)), note=note) + (self._repr_svg_() or "")

    def _repr_svg_(self) -> str | None:
        """Return the curves, or None before the first epoch is finished."""
        return self.plot()._repr_svg_() if self.history else None

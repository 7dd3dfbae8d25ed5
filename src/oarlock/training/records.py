"""The measurements of epochs, and the result of a run."""

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
    """The measurements at some step."""

    @cached_property
    def text(self) -> str:
        """The record as JSON, as it was when somebody first asked."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]


@dataclass(frozen=True)
class EpochRecord(_Record):
    """One pass over the data: means over its rows, by label, and the values of metrics; `validation` likewise, empty where there was none.

    `step` is the step after which it was over. A pass that was taken up in its middle is averaged whole, since a run that stops leaves its
    sums. Of one that was saved before that was so, the means are of the rows that were left.
    """

    epoch: int
    training: dict[str, float]
    validation: dict[str, float]
    step: int = 0

    @property
    def values(self) -> dict[str, float]:
        """All of them by label; those of the validation are called "validation ..."."""
        return self.training | {f"validation {label}": value for label, value in self.validation.items()}


@dataclass(frozen=True)
class ValidationRecord(_Record):
    """The measurements on the validation data after `step`, in an epoch, by label."""

    epoch: int
    validation: dict[str, float]
    step: int

    @property
    def values(self) -> dict[str, float]:
        """By labels such as "validation loss"."""
        return {f"validation {label}": value for label, value in self.validation.items()}


@dataclass
class TrainingResult:
    """The result of training: the training program, the scope it ran in, and the measurements of each epoch.

    `ol.save_model(result, path)` saves it to be continued; `ol.save_model(predict, result.parameters, path)`
    saves the program that predicts. `steps` counts the steps of the program's whole life. `validations` are those that were made every
    so many steps.
    """

    program: Program
    parameters: "Scope"
    history: list[EpochRecord] = field(default_factory=list)
    steps: int = 0
    validations: list[ValidationRecord] = field(default_factory=list)

    def plot(self, path: "str | os.PathLike[str] | None" = None, *, metrics: Sequence[str] = (), log: bool = False) -> Plot:
        """The curves of `history`, a chart for each metric, with validation beside training; written to `path` where one is given.

            print(result.plot())
            result.plot("losses.svg", log=True)

        `metrics` are the labels to draw, all of them unless given; `log` makes the axis of values logarithmic. The plot prints as text, a
        notebook shows it, and `save` writes a PNG, SVG or PDF. Raises ArgumentError where no epoch is over, and what `Plot.save` raises.
        """
        from oarlock.training.run_plot import plot_history  # which is about records

        drawn = plot_history(self.history, self.validations, metrics=metrics, log=log)
        if path is not None:
            drawn.save(path)
        return drawn

    def _repr_html_(self) -> str:
        """The table of the last epochs that a notebook shows, above the curves of all."""
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
        """The curves; None before an epoch is over."""
        return self.plot()._repr_svg_() if self.history else None

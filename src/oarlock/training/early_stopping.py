"""When a run ends early: it no longer gets better, or it is good enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.registry.range_check import require_count
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = ["EarlyStopping"]

Record = EpochRecord | ValidationRecord


@dataclass(frozen=True)
class EarlyStopping:
    """The end of a run by what its epochs measured (Prechelt, 1998): a label such as "loss", or "validation loss".

    The run ends after `patience` epochs in a row without one that is better than all before by more than `least_change` (`min_delta`
    elsewhere), or when `target` is reached. Lower is better, unless `higher_is_better`. Of a run that is validated every so many steps, a
    label of the validation counts those instead of epochs. It is a function of the history alone, so a run that is taken up ends where it
    would have. With `restore_best`, a run that is over has the state after its best epoch: parameters, what the optimizer keeps, the
    number of steps. Raises ArgumentError where neither patience nor target is given.
    """

    label: str = "validation loss"
    patience: int | None = None
    target: float | None = None
    higher_is_better: bool = False
    least_change: float = 0.0
    restore_best: bool = False

    def __post_init__(self) -> None:
        if self.patience is None and self.target is None:
            raise ArgumentError(
                "early stopping has a patience or a target", hint='ol.training.EarlyStopping("validation loss", patience=5)'
            )
        if self.patience is not None:
            require_count("patience", self.patience)
        for name in ("target", "least_change"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
                raise ArgumentError(f"{name} is a finite number, not {value!r:.60}")

    def require_measured(self, labels: Sequence[str]) -> None:
        """Raise ArgumentError where none of the `labels` that epochs measure is the one."""
        if self.label not in labels:
            raise ArgumentError(f'nothing is measured that is called "{self.label}"', given=[f"there are: {', '.join(labels)}"])

    @property
    def is_of_validation(self) -> bool:
        """Whether it looks at the validation data."""
        return self.label.startswith("validation ")

    def best(self, history: Sequence[Record]) -> Record | None:
        """The best epoch; the first of those that are alike. None without one. Raises ArgumentError where nothing has the label."""
        number = self._number_of_best(history)
        return None if number is None else history[number]

    def is_over(self, history: Sequence[Record]) -> bool:
        """Whether the run ends after these epochs. Raises as `best`."""
        if not history:
            return False
        if self.target is not None and self._value(history[-1]) <= (-self.target if self.higher_is_better else self.target):
            return True
        best = self._number_of_best(history)
        return self.patience is not None and len(history) - 1 - (-1 if best is None else best) >= self.patience

    def _number_of_best(self, history: Sequence[Record]) -> int | None:
        best, found = None, math.inf
        for number, record in enumerate(history):
            value = self._value(record)
            if value < found - (self.least_change if best is not None else 0.0):
                best, found = number, value
        return best

    def _value(self, record: Record) -> float:
        """The measure of an epoch, lower if it is better; infinite for what is no number."""
        values = record.values
        if self.label not in values:
            raise ArgumentError(f'nothing is measured that is called "{self.label}"', given=[f"there are: {', '.join(values)}"])
        value = -values[self.label] if self.higher_is_better else values[self.label]
        return math.inf if math.isnan(value) else value

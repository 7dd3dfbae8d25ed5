"""Ending a run early, because it stops improving or is good enough."""

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
    """Early stopping by a metric of the epochs (Prechelt, 1998): a label such as "loss" or "validation loss".

    The run ends after `patience` epochs in a row that do not improve the best value by more than `least_change` (`min_delta` in other
    frameworks), or when `target` is reached. Lower is better, unless `higher_is_better`. With `validate_every`, a validation label counts
    validations instead of epochs. Early stopping depends only on the recorded history, so a resumed run stops at the same epoch. With
    `restore_best`, the result has the state after the best epoch: parameters, optimizer state and step count. Raises ArgumentError if
    neither patience nor target is given.
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
                "early stopping needs a patience or a target", hint='ol.training.EarlyStopping("validation loss", patience=5)'
            )
        if self.patience is not None:
            require_count("patience", self.patience)
        for name in ("target", "least_change"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
                raise ArgumentError(f"{name} must be a finite number, not {value!r:.60}")

    def require_measured(self, labels: Sequence[str]) -> None:
        """Raise ArgumentError if the label is not among the measured `labels`."""
        if self.label not in labels:
            raise ArgumentError(f'no metric is called "{self.label}"', given=[f"metrics: {', '.join(labels)}"])

    @property
    def is_of_validation(self) -> bool:
        """Whether the label is a validation metric."""
        return self.label.startswith("validation ")

    def best(self, history: Sequence[Record]) -> Record | None:
        """Return the best epoch (the earliest one on ties), or None if there is none.

        Raises ArgumentError if the label was not measured.
        """
        number = self._number_of_best(history)
        return None if number is None else history[number]

    def is_over(self, history: Sequence[Record]) -> bool:
        """Return whether the run ends after these epochs. Raises ArgumentError if the label was not measured."""
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
        """Return the metric of an epoch, negated if higher is better; infinity for NaN."""
        values = record.values
        if self.label not in values:
            raise ArgumentError(f'no metric is called "{self.label}"', given=[f"metrics: {', '.join(values)}"])
        value = -values[self.label] if self.higher_is_better else values[self.label]
        return math.inf if math.isnan(value) else value

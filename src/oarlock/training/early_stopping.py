"""When a run ends early: it no longer gets better, or it is good enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.registry.range_check import require_count
from oarlock.training.records import EpochRecord

__all__ = ["EarlyStopping"]


@dataclass(frozen=True)
class EarlyStopping:
    """The end of a run by what its epochs measured (Prechelt, 1998): a label such as "loss", or "validation loss".

    The run ends after `patience` epochs in a row without one that is better than all before by more than `least_change`, or when `target`
    is reached. Lower is better, unless `higher_is_better`. It is a function of the history alone, so a run that is taken up ends where it
    would have. Raises ArgumentError where neither is given.
    """

    label: str = "validation loss"
    patience: int | None = None
    target: float | None = None
    higher_is_better: bool = False
    least_change: float = 0.0

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

    def best(self, history: Sequence[EpochRecord]) -> EpochRecord | None:
        """The best epoch; the first of those that are alike. None without one. Raises ArgumentError where nothing has the label."""
        best, found = None, math.inf
        for record in history:
            value = self._value(record)
            if value < found - (self.least_change if best is not None else 0.0):
                best, found = record, value
        return best

    def is_over(self, history: Sequence[EpochRecord]) -> bool:
        """Whether the run ends after these epochs. Raises as `best`."""
        if not history:
            return False
        if self.target is not None and self._value(history[-1]) <= (-self.target if self.higher_is_better else self.target):
            return True
        best = self.best(history)
        return self.patience is not None and history[-1].epoch - (best.epoch if best else history[0].epoch - 1) >= self.patience

    def _value(self, record: EpochRecord) -> float:
        """The measure of an epoch, lower if it is better; infinite for what is no number."""
        values = record.training | {f"validation {label}": value for label, value in record.validation.items()}
        if self.label not in values:
            raise ArgumentError(f'nothing is measured that is called "{self.label}"', given=[f"there are: {', '.join(values)}"])
        value = -values[self.label] if self.higher_is_better else values[self.label]
        return math.inf if math.isnan(value) else value

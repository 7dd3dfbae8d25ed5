"""The state of a run in a checkpoint, in addition to its program and values: its progress and metrics."""

import json
from dataclasses import dataclass, field
from typing import Any

from oarlock.errors import FormatError
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = ["SavedState"]


@dataclass(frozen=True)
class SavedState:
    """The progress and metrics in a checkpoint: the finished epochs, and the sums of the current one.

    `per_epoch` is the number of batches per epoch, if known; `is_ended`: whether `on_epoch` ended the run.
    """

    steps: int
    history: list[EpochRecord]
    rows: int
    totals: dict[str, float]
    per_epoch: int | None
    is_ended: bool
    validations: list[ValidationRecord] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Return the state as JSON. The text of each record is cached, because the history grows and checkpoints delay training."""
        held = {name: value for name, value in vars(self).items() if name not in ("history", "validations")}
        history, validations = (", ".join([record.text for record in records]) for records in (self.history, self.validations))
        return f'{{"history": [{history}], "validations": [{validations}], {json.dumps(held)[1:]}'.encode()

    @classmethod
    def from_json(cls, held: dict[str, Any], where: str) -> "SavedState":
        """Return the state from parsed JSON. Raises FormatError, which mentions `where` it was."""
        try:
            history = [EpochRecord(**record) for record in held["history"]]
            validations = [ValidationRecord(**record) for record in held["validations"]]
            return cls(**{**held, "history": history, "validations": validations})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"the state of the checkpoint of {where} cannot be read") from error

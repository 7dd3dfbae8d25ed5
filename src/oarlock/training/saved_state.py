"""The state of a run in a checkpoint, beside a program and its values: how far it is, and what it has measured."""

import json
from dataclasses import dataclass, field
from typing import Any

from oarlock.errors import FormatError
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = ["SavedState"]


@dataclass(frozen=True)
class SavedState:
    """The content of a checkpoint beside the program and its values: the epochs so far, and the sums of the one that was not over.

    `per_epoch` is the number of batches in an epoch, if that is known; `is_ended` whether a function of the user's ended the run.
    """

    steps: int
    history: list[EpochRecord]
    rows: int
    totals: dict[str, float]
    per_epoch: int | None
    is_ended: bool
    validations: list[ValidationRecord] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """As JSON, of which a record of the past is written once: a run has ever more of them, and saves beside its steps."""
        held = {name: value for name, value in vars(self).items() if name not in ("history", "validations")}
        history, validations = (", ".join([record.text for record in records]) for records in (self.history, self.validations))
        return f'{{"history": [{history}], "validations": [{validations}], {json.dumps(held)[1:]}'.encode()

    @classmethod
    def from_json(cls, held: dict[str, Any], where: str) -> "SavedState":
        """The state, read as JSON. Raises FormatError, which says `where` it is."""
        try:
            history = [EpochRecord(**record) for record in held["history"]]
            validations = [ValidationRecord(**record) for record in held["validations"]]
            return cls(**{**held, "history": history, "validations": validations})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"the state of the checkpoint of {where} cannot be read") from error

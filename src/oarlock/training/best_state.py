"""The best state of a run, by its metrics, and restoring it."""

from collections.abc import Sequence

from oarlock.ir.location import warn_here
from oarlock.runtime.scope import Scope
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.run_folder import RunFolder
from oarlock.training.state_copy import StateCopy

__all__ = ["BestState"]


class BestState:
    """The early end of a run, its best record and the state of that record.

    `early_stopping` examines epochs or, if the run is validated `by_steps` and the label is a validation metric, those validations.
    """

    def __init__(self, result: TrainingResult, early_stopping: EarlyStopping | None, folder: RunFolder | None, *, by_steps: bool):
        self._result, self._early_stopping, self._folder = result, early_stopping, folder
        self._by_steps = by_steps and early_stopping is not None and early_stopping.is_of_validation
        self._copy: StateCopy | None = None  # only for `restore_best`, if this process has reached it

    @property
    def is_over(self) -> bool:
        """Whether the run ends."""
        return self._early_stopping is not None and self._early_stopping.is_over(self._measured)

    @property
    def restores(self) -> bool:
        """Whether the result has the best state instead of the last one."""
        return self._early_stopping is not None and self._early_stopping.restore_best

    @property
    def record(self) -> EpochRecord | ValidationRecord | None:
        """The best record; None without early stopping or before the first record."""
        return None if self._early_stopping is None else self._early_stopping.best(self._measured)

    def is_after(self, step: int) -> bool:
        """Return whether the best record so far was made after `step`."""
        best = self.record
        return best is not None and best.step == step

    def note(self, record: EpochRecord | ValidationRecord) -> None:
        """Copy the state if `record`, the newest one, is the best and the best state is to be restored."""
        if self.restores and record is self.record:
            self._copy = self._copy or StateCopy(self._result.program, self._result.parameters)
            self._copy.take()

    def restore(self) -> None:
        """Restore the best state in the result of a finished run, if requested.

        A state of an earlier process is loaded from its checkpoint.
        """
        best = self.record if self.restores else None
        if best is None or best.step == self._result.steps:
            return
        if self._copy is None:
            saved = self._saved(best.step)
            if saved is None:
                warn_here(f"the checkpoint of step {best.step}, the best one, no longer exists; the last state is kept", RuntimeWarning)
                return
            self._copy = StateCopy(self._result.program, self._result.parameters)
            self._copy.take_from(saved)
        self._copy.restore()
        self._result.steps = best.step

    def _saved(self, step: int) -> Scope | None:
        return None if self._folder is None else self._folder.load(step)

    @property
    def _measured(self) -> Sequence[EpochRecord | ValidationRecord]:
        return self._result.validations if self._by_steps else self._result.history

"""The best state of a run: by which measurements it is known, and the way back to it."""

from collections.abc import Sequence

from oarlock.ir.location import warn_here
from oarlock.runtime.scope import Scope
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.run_folder import RunFolder
from oarlock.training.state_copy import StateCopy

__all__ = ["BestState"]


class BestState:
    """The end of a run by its measurements: whether it has come, which of them is the best, and the state that it was made of.

    `early_stopping` looks at epochs, or where the run is validated `by_steps` and the label is one of the validation, at those validations.
    """

    def __init__(self, result: TrainingResult, early_stopping: EarlyStopping | None, folder: RunFolder | None, *, by_steps: bool):
        self._result, self._early_stopping, self._folder = result, early_stopping, folder
        self._by_steps = by_steps and early_stopping is not None and early_stopping.is_of_validation
        self._copy: StateCopy | None = None  # where it is to be restored, and this process has reached it

    @property
    def is_over(self) -> bool:
        """Whether the run ends."""
        return self._early_stopping is not None and self._early_stopping.is_over(self._measured)

    @property
    def restores(self) -> bool:
        """Whether a run that is over has the best state, as it was measured, rather than the last one."""
        return self._early_stopping is not None and self._early_stopping.restore_best

    @property
    def record(self) -> EpochRecord | ValidationRecord | None:
        """The best measurement; None where nobody asks for it, or there is none."""
        return None if self._early_stopping is None else self._early_stopping.best(self._measured)

    def is_after(self, step: int) -> bool:
        """Whether the best one so far was made after `step`."""
        best = self.record
        return best is not None and best.step == step

    def note(self, record: EpochRecord | ValidationRecord) -> None:
        """Copy the state, where it is to be restored, if this newest record is the best."""
        if self.restores and record is self.record:
            self._copy = self._copy or StateCopy(self._result.program, self._result.parameters)
            self._copy.take()

    def restore(self) -> None:
        """Let the result of a run that is over have the best state, where that was asked for: if a process before reached it, as saved."""
        best = self.record if self.restores else None
        if best is None or best.step == self._result.steps:
            return
        if self._copy is None:
            saved = self._saved(best.step)
            if saved is None:
                warn_here(
                    f"the state after step {best.step}, the best one, is not kept any more; that of the last step stays", RuntimeWarning
                )
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

"""The loop over steps and epochs."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from oarlock.errors import NotFiniteError
from oarlock.ir.names import COUNTER
from oarlock.ir.program import Program
from oarlock.metric.state import reset
from oarlock.runtime.executor import Executor
from oarlock.runtime.preparation import Values
from oarlock.runtime.scope import Scope
from oarlock.training.batches import Batch, Batches
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.last_good import LastGood
from oarlock.training.metrics import LossWatch, Means, leave, metrics_in, taken_up
from oarlock.training.progress import Display
from oarlock.training.records import EpochRecord, TrainingResult
from oarlock.training.replay import Replay, one_epoch
from oarlock.training.run_folder import RunFolder, SavedState

__all__ = ["Loop"]


@dataclass
class Loop:
    """The steps of a run: what they are fed, what is told of them, and where they are kept."""

    program: Program
    scope: Scope
    batches: Batches | Replay
    held_out: Batches | Replay | None
    executor: Executor
    early_stopping: EarlyStopping | None
    on_step: Callable[[int, dict[str, float]], object] | None
    on_epoch: Callable[[EpochRecord], object] | None
    folder: RunFolder | None
    stops: bool = False  # before a step that is not finite

    def __post_init__(self) -> None:
        steps = int(self.scope[COUNTER])  # type: ignore[call-overload]
        self.result = TrainingResult(self.program, self.scope, steps=steps)
        self.means = taken_up(self.program, self.scope, steps)
        self.metrics = metrics_in(self.program)
        self.loss = LossWatch(self.program, self.scope)
        self.last_good = LastGood(self.program, self.scope, self.executor) if self.stops else None
        self.is_recorded = True  # every epoch that is over has its record
        self.in_middle = self.means.rows > 0
        self.is_ended = False  # by a function of the user's
        if self.early_stopping is not None:
            labels = list(self.program.targets)
            self.early_stopping.require_measured(labels + [f"validation {label}" for label in labels if self.held_out is not None])

    def go_on(self, saved: SavedState | None) -> None:
        """Take up what a checkpoint measured."""
        if saved is not None:
            self.result.history = list(saved.history)
            self.means = Means(self.metrics)
            self.means.rows, self.means.totals = saved.rows, dict(saved.totals)
            self.in_middle, self.is_ended = saved.rows > 0, saved.is_ended

    def run(self, steps: int | None, display: Display) -> TrainingResult:
        """Train to the end of the last epoch, for so many steps more, or until somebody ends it. Raises Interrupted."""
        assert self.program.training is not None
        result, done, epochs = self.result, self.result.steps, self.program.training.epochs
        total = None if self.batches.per_epoch is None else epochs * self.batches.per_epoch
        known = total if isinstance(self.batches, Batches) else None  # a stream may give others than it says
        stop = min((end for end in (known, None if steps is None else done + steps) if end is not None), default=None)
        try:
            with Stopping() as stopping, contextlib.closing(self.batches.after(done)) as following:
                display.start(done=done, total=total if stop is None else stop, epochs=epochs, unit=self._unit)
                try:
                    is_over = self.is_ended or (len(result.history) > 0 and result.history[-1].epoch >= epochs)
                    is_over = is_over or (self.early_stopping is not None and self.early_stopping.is_over(result.history))
                    while not is_over and (stop is None or result.steps < stop):
                        stopping.check()
                        batch = next(following)
                        if batch.epoch >= epochs:  # of a run that was over
                            break
                        self._step(batch, display)
                        saves = batch.is_last or (self.folder is not None and result.steps % (self.folder.run.save_every or math.inf) == 0)
                        if saves:
                            self._require_finite()
                        if batch.is_last:
                            is_over = self._epoch(batch.epoch + 1, stopping, display) or batch.epoch + 1 == epochs
                        if saves:
                            self._save()
                    self._require_finite()
                except Exception as error:  # perhaps a kernel refuses what a step before has made
                    self._require_finite(error)
                    raise
                finally:
                    self._save()
                    if self.in_middle:
                        leave(self.means, self.program, self.scope, result.steps)
                    display.stop()
        except KeyboardInterrupt as interrupt:
            result.steps = int(self.scope[COUNTER])  # type: ignore[call-overload]  the last step may have been finished, and not counted
            raise Interrupted(result) from interrupt
        return result

    def _step(self, batch: Batch, display: Display) -> None:
        if batch.number == 0:
            self.means = Means(self.metrics)
        if self.held_out is None:
            self._keep_sample("training", self.batches, batch)
        if self.last_good is not None:
            self.last_good.remember(self.means)
        values = self._compute(batch)
        self.result.steps += 1
        self.is_recorded = self.in_middle = not batch.is_last
        numbers = self.means.add(self.program.targets, values, batch.rows)
        if self.last_good is not None and not self.last_good.accepts(batch, numbers):
            self._require_finite()
        if not self.means.are_finite:
            self.loss.warn(values, batch.feed, step=self.result.steps, epoch=batch.epoch + 1)
        display.step(epoch=batch.epoch + 1, rows=batch.rows, metrics=self.means.values)
        if self.folder is not None:
            self.folder.step(self.result.steps, batch.epoch + 1, batch.rows, numbers)
        if self.on_step is not None:
            self.on_step(self.result.steps, numbers)

    def _compute(self, batch: Batch) -> Values:
        return self.executor.run(self.program, batch.feed, list(self.program.targets), scope=self.scope, training=True)

    def _require_finite(self, cause: Exception | None = None) -> None:
        """Raise NotFiniteError where a step was not good; everything is then as it was before that step."""
        if self.last_good is None or isinstance(cause, NotFiniteError) or self.last_good.is_sound():
            return
        back = self.last_good.go_back(self._compute)
        self.means, self.in_middle, self.is_recorded = back.means, back.in_middle, True
        self.result.steps = int(self.scope[COUNTER])  # type: ignore[call-overload]
        back.error.result = self.result
        raise back.error from cause

    def _epoch(self, epoch: int, stopping: Stopping, display: Display) -> bool:
        """Record an epoch that is over; return whether the run is over too."""
        reset(self.program, self.scope)
        validation = {} if self.held_out is None else self._measure(epoch, self.held_out, stopping)
        record = EpochRecord(epoch, self.means.values, validation, self.result.steps)
        self.result.history.append(record)
        self.is_recorded = True
        display.epoch(epoch=epoch, metrics=record.values)
        if self.folder is not None:
            self.folder.epoch(record)
        asked = self.on_epoch(record) if self.on_epoch is not None else None
        self.is_ended = asked is True
        return self.is_ended or (self.early_stopping is not None and self.early_stopping.is_over(self.result.history))

    def _measure(self, epoch: int, held_out: Batches | Replay, stopping: Stopping) -> dict[str, float]:
        """The means of the targets over data, at the end of an epoch, without training on it."""
        means = Means(self.metrics)
        try:
            for batch in one_epoch(held_out):
                stopping.check()
                self._keep_sample("validation", held_out, batch)
                values = self.executor.run(self.program, batch.feed, list(self.program.targets), scope=self.scope, training=False)
                means.add(self.program.targets, values, batch.rows)
                if not means.are_finite:
                    self.loss.warn(values, batch.feed, step=self.result.steps, epoch=epoch, validation=True)
        finally:
            reset(self.program, self.scope)
        return means.values

    def _keep_sample(self, part: str, batches: Batches | Replay, batch: Batch) -> None:
        """Let the folder keep a few rows: of all where they are in memory, of a batch where they are not."""
        if self.folder is not None:
            whole = batches.columns if isinstance(batches, Batches) else None
            feed, rows = (batch.feed, batch.rows) if whole is None else (whole, batches.rows)  # type: ignore[union-attr]
            self.folder.keep_sample(self.program, part, feed, rows)

    def _save(self) -> None:
        """Write a checkpoint, unless a step or an epoch is not recorded whole: then the one before is where the run goes on."""
        counted = int(self.scope[COUNTER])  # type: ignore[call-overload]
        if self.folder is None or not self.is_recorded or counted != self.result.steps or not self._is_sound:
            return
        best = None if self.early_stopping is None else self.early_stopping.best(self.result.history)
        means, history = self.means if self.in_middle else Means(), self.result.history
        state = SavedState(counted, history, means.rows, means.totals, self.batches.per_epoch, self.is_ended)
        self.folder.save(self.program, self.scope, state, best=None if best is None else best.step)

    @property
    def _is_sound(self) -> bool:
        return self.last_good is None or self.last_good.is_sound()

    @property
    def _unit(self) -> str:
        """The word for the rows of the data."""
        return "images" if any(var.name == "image" for var in self.program.main.inputs) else "rows"

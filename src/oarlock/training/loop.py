"""The loop over steps and epochs."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from oarlock.errors import NotFiniteError
from oarlock.ir.location import warn_here
from oarlock.ir.names import COUNTER
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.metric.state import reset
from oarlock.optimizer.last_accumulation import accumulates, apply_accumulated
from oarlock.passes.pruning import prune
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.preparation import Values
from oarlock.runtime.recording import each
from oarlock.runtime.scope import Scope, frozen_in, lock_of_writing
from oarlock.runtime.step import Step
from oarlock.training.batches import Batch, Batches, Replay, one_epoch
from oarlock.training.best_state import BestState
from oarlock.training.checkpoint import SavedState
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.last_good import LastGood
from oarlock.training.loggers.isolation import Loggers
from oarlock.training.metrics import LossWatch, Means, metrics_in, store_means, take_means
from oarlock.training.progress import Display
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.run_folder import RunFolder
from oarlock.training.together import shared_by

__all__ = ["Loop"]

_PATIENCE = 3600.0  # seconds that Ctrl-C waits for a step of several workers: interrupting one fails the others


@dataclass
class Loop:
    """The training loop: feeds batches, reports metrics, saves checkpoints."""

    program: Program
    scope: Scope
    batches: Batches | Replay
    held_out: Batches | Replay | None
    executor: Executor
    early_stopping: EarlyStopping | None
    on_step: Callable[[int, dict[str, float]], object] | None
    on_epoch: Callable[[EpochRecord], object] | None
    folder: RunFolder | None
    loggers: Loggers
    validate_every: int | None = None  # steps; None for the end of each epoch
    stops: bool = False  # with NotFiniteError, before the first bad step
    shard_optimizer: bool = False
    sync_batch_norm: bool = True

    def __post_init__(self) -> None:
        steps = int(self.scope[COUNTER])  # type: ignore[call-overload]
        self.result = TrainingResult(self.program, self.scope, steps=steps)
        self.means = take_means(self.program, self.scope, steps)
        self.metrics = metrics_in(self.program)
        self.has_metrics = any(op.role is Role.MEASURE for op in self.program.main.tail)
        self.loss = LossWatch(self.program, self.scope)
        self._validates = self.held_out is not None and self.validate_every is not None
        self.workers = self.executor.workers
        self._share()
        self.ends_together = False  # all workers end after the same step
        self.last_good = LastGood(self.running, self.scope, self.executor) if self.stops else None
        self.is_recorded = True  # every finished epoch has its record
        self.in_middle = self.means.rows > 0
        self.is_ended = False  # by `on_epoch`
        self.best = BestState(self.result, self.early_stopping, self.folder, by_steps=self.validate_every is not None)
        self._prepared: tuple[object, Step] | None = None  # its key, and the prepared step
        if self.early_stopping is not None:
            labels = list(self.program.targets)
            self.early_stopping.require_measured(labels + [f"validation {label}" for label in labels if self.held_out is not None])

    def summary(self, status: str) -> dict[str, object]:
        """Return the final status and metrics of the run, for loggers."""
        history, validations = self.result.history[-1:], self.result.validations[-1:]
        measured = {f"epoch/{label}": value for record in history for label, value in record.training.items()}
        measured |= {f"validation/{label}": value for record in [*history, *validations] for label, value in record.validation.items()}
        epochs = history[-1].epoch if history else 0
        return {"status": status, "steps": self.result.steps, "epochs": epochs, **measured}

    def restore_progress(self, saved: SavedState | None) -> None:
        """Restore the metrics recorded in a checkpoint."""
        if saved is not None:
            self.result.history, self.result.validations = list(saved.history), list(saved.validations)
            self.means = Means(self.metrics)
            self.means.rows, self.means.totals = saved.rows, dict(saved.totals)
            self.in_middle, self.is_ended = saved.rows > 0, saved.is_ended

    def run(self, steps: int | None, display: Display) -> TrainingResult:
        """Train to the last epoch, for `steps` further steps, or until a callback ends the run. Raises Interrupted or NotFiniteError.

        Meanwhile, sharded state in the scope is only this worker's part.
        """
        self.shares.take(self.scope)
        try:
            result = self._run(steps, display)
        except (Interrupted, NotFiniteError) as raised:
            if isinstance(raised, NotFiniteError) and self.folder is not None:
                self.folder.fail(self.result.steps, raised.message)
            if self.ends_together:
                self.shares.join(self.scope)
            raise
        self.shares.join(self.scope)
        return result

    def _share(self) -> None:
        how = {"shard_optimizer": self.shard_optimizer, "sync_batch_norm": self.sync_batch_norm}
        self.running, self.shares = shared_by(self.workers, self.program, **how)
        # Prune for validation: running the whole program would exchange gradients between workers.
        self.measuring = self.running if self.workers.count == 1 else prune(self.running, self.running.targets)
        if self.folder is not None:
            self.folder.shares = self.shares

    def _run(self, steps: int | None, display: Display) -> TrainingResult:
        assert self.program.training is not None
        result, done, epochs = self.result, self.result.steps, self.program.training.epochs
        total = None if self.batches.per_epoch is None else epochs * self.batches.per_epoch
        known = total if isinstance(self.batches, Batches) else None  # the length that a stream claims may be wrong
        save_every = None if self.folder is None else self.folder.run.save_every
        stop = min((end for end in (known, None if steps is None else done + steps) if end is not None), default=None)
        try:
            patience = 1.0 if self.workers.count == 1 else _PATIENCE
            with Stopping(patience) as stopping, contextlib.closing(self.batches.after(done)) as batches:
                following = each("data", "read data", batches)
                display.start(done=done, total=total if stop is None else stop, epochs=epochs, unit=self._unit)
                try:
                    is_over = self.is_ended or self.has_all_epochs() or self.best.is_over
                    while not is_over and (stop is None or result.steps < stop):
                        if stopping.asked or self.workers.count > 1:
                            self._check(stopping)
                        batch = next(following)
                        if batch.epoch >= epochs:  # the run was finished before
                            break
                        self._step(batch, display)
                        is_last = batch.is_last and batch.epoch + 1 == epochs
                        if is_last:  # so that validation measures the final parameters
                            self._apply_accumulated()
                        validates = self._validates and self._validates_after(result.steps)
                        saves = batch.is_last or (save_every is not None and result.steps % save_every == 0)
                        if saves or validates:
                            self._require_finite()
                        if validates:
                            is_over = self._validate(batch, stopping)
                        if batch.is_last:
                            is_over = self._epoch(batch.epoch + 1, stopping, display) or is_over or is_last
                        if is_over and not is_last and not self.best.restores:
                            self._apply_accumulated()
                        if saves or (validates and self.best.is_after(result.steps)):
                            self._save()
                    self._require_finite()
                except Exception as error:  # a kernel may fail on bad values from an earlier step
                    self._require_finite(error)
                    raise
                finally:
                    self._save()
                    if self.in_middle:
                        store_means(self.means, self.program, self.scope, result.steps)
                    display.stop()
                if is_over:
                    self.best.restore()
        except KeyboardInterrupt as interrupt:
            result.steps = int(self.scope[COUNTER])  # type: ignore[call-overload]  the last step may be finished, but not counted
            raise Interrupted(result) from interrupt
        if is_over and self.folder is not None:
            self.folder.end(result.steps)
        return result

    def _apply_accumulated(self) -> None:
        """Apply the gradients accumulated by the last steps of the run, and warn that they are fewer than usual."""
        if not accumulates(self.program):
            return
        self._require_finite()
        self.shares.join(self.scope)
        try:
            steps = apply_accumulated(self.program, self.scope, executor=self.executor)
        finally:
            self.shares.take(self.scope)
        if steps and self.workers.index == 0:
            warn_here(
                f"the last update uses the mean gradient of only {steps} step{'s' * (steps > 1)}, fewer than the optimizer accumulates"
            )

    def _check(self, stopping: Stopping) -> None:
        """Raise KeyboardInterrupt if any worker was interrupted. All workers then end after the same step."""
        if self.workers.count == 1:
            stopping.check()
        elif self.workers.any_says(stopping.asked):
            self.ends_together = True
            raise KeyboardInterrupt

    def _step(self, batch: Batch, display: Display) -> None:
        """Run one step and report it. Kept short, because a step may take no longer than a few hundred of its lines."""
        result, folder, last_good, epoch = self.result, self.folder, self.last_good, batch.epoch + 1
        if batch.number == 0:
            self.means = Means(self.metrics)
        means = self.means
        if folder is not None and self.held_out is None and not folder.is_sampled:
            self._keep_sample("training", self.batches, batch)
        if last_good is not None:
            last_good.remember(means)
        values = self._compute(batch)
        result.steps = step = result.steps + 1
        self.in_middle = not batch.is_last
        self.is_recorded = self.in_middle and not (self._validates and self._validates_after(step))
        numbers = means.add(self.program.targets, values, batch.rows)
        if last_good is not None and not last_good.accepts(batch, numbers):
            self._require_finite()
        if not means.are_finite:
            self.loss.warn(values, batch.feed, step=step, epoch=epoch)
        display.step(epoch=epoch, rows=batch.rows, means=means)
        if folder is not None:
            folder.log.step(step, epoch, batch.rows, numbers)
        if self.loggers:
            self.loggers.log(step, "train", numbers)
        if self.on_step is not None:
            self.on_step(step, numbers)

    def _require_finite(self, cause: Exception | None = None) -> None:
        """Raise NotFiniteError if a step was bad, after restoring the state before it."""
        if self.last_good is None or isinstance(cause, NotFiniteError) or self.last_good.is_sound():
            return
        rollback = self.last_good.roll_back(self._compute)
        self.ends_together = True
        self.means, self.in_middle, self.is_recorded = rollback.means, rollback.in_middle, True
        self.result.steps = int(self.scope[COUNTER])  # type: ignore[call-overload]
        rollback.error.result = self.result
        raise rollback.error from cause

    def _compute(self, batch: Batch) -> Values:
        """Return the values of the targets on a batch.

        The step is prepared once, and again after a callback changed the program or scope.
        """
        depends_on = self.program.revision, frozen_in(self.scope)
        if self._prepared is None or self._prepared[0] != depends_on:
            targets = list(self.program.targets)
            if self._prepared is not None:
                self.shares.join(self.scope)
                self._share()
                self.shares.take(self.scope)
            step = self.executor.prepare(self.running, targets, scope=self.scope, training=True, return_numpy=False)
            self._prepared = depends_on, step
        return self._prepared[1](batch.feed)

    def _epoch(self, epoch: int, stopping: Stopping, display: Display) -> bool:
        """Record a finished epoch; return whether the run is finished too."""
        if self.has_metrics:
            reset(self.program, self.scope)
        if self.validate_every is None:
            validation = {} if self.held_out is None else self._measure(epoch, self.held_out, stopping)
        else:  # the last validation of this epoch
            latest = self.result.validations[-1] if self.result.validations else None
            validation = latest.validation if latest is not None and latest.epoch == epoch else {}
        record = EpochRecord(epoch, self.means.values, validation, self.result.steps)
        self.result.history.append(record)
        self.best.note(record)
        self.is_recorded = True
        display.epoch(epoch=epoch, metrics=record.values)
        if self.folder is not None:
            self.folder.epoch(record)
        if validation and self.validate_every is None:
            self.loggers.log(record.step, "validation", validation)
        self.loggers.epoch(record.step, epoch, record.training)
        asked = self.on_epoch(record) if self.on_epoch is not None else None
        self.is_ended = asked is True
        return self.is_ended or self.best.is_over

    def _validates_after(self, step: int) -> bool:
        return self.held_out is not None and self.validate_every is not None and step % self.validate_every == 0

    def _validate(self, batch: Batch, stopping: Stopping) -> bool:
        """Record a validation after a step; return whether the run is finished."""
        assert self.held_out is not None
        record = ValidationRecord(batch.epoch + 1, self._measure(batch.epoch + 1, self.held_out, stopping), self.result.steps)
        self.result.validations.append(record)
        self.is_recorded = not batch.is_last
        if self.folder is not None:
            self.folder.epoch(record)
        self.loggers.log(record.step, "validation", record.validation)
        self.best.note(record)
        return self.best.is_over

    def _measure(self, epoch: int, held_out: Batches | Replay, stopping: Stopping) -> dict[str, float]:
        """Return the means of the targets over validation data. Metrics count it separately from the training data."""
        means, inside = Means(self.metrics), self.scope.new_scope()
        try:
            init(self.measuring, inside, overwrite=True, only={op.writes[0] for op in self.measuring.main.tail if op.role is Role.MEASURE})
            for batch in one_epoch(held_out):
                self._check(stopping)
                self._keep_sample("validation", held_out, batch)
                values = self.executor.run(self.measuring, batch.feed, list(self.program.targets), scope=inside, training=False)
                means.add(self.program.targets, values, batch.rows)
                if not means.are_finite:
                    self.loss.warn(values, batch.feed, step=self.result.steps, epoch=epoch, validation=True)
        finally:
            inside.drop()
        return means.values

    def _keep_sample(self, part: str, batches: Batches | Replay, batch: Batch) -> None:
        """Store sample rows in the run folder, of the whole data if it is in memory, otherwise of the batch."""
        if self.folder is not None:
            whole = batches.columns if isinstance(batches, Batches) else None
            feed, rows = (batch.feed, batch.rows) if whole is None else (whole, batches.rows)  # type: ignore[union-attr]
            self.folder.keep_sample(self.program, part, feed, rows)  # type: ignore[arg-type]  a tensor feed implies whole columns

    def has_all_epochs(self) -> bool:
        """Return whether all requested epochs are finished."""
        assert self.program.training is not None
        return len(self.result.history) > 0 and self.result.history[-1].epoch >= self.program.training.epochs

    def _save(self) -> None:
        """Write a checkpoint, unless a step or an epoch is not fully recorded: then the previous checkpoint remains the newest."""
        if self.folder is None or not self.is_recorded:
            return
        counted = self._counted()
        if counted != self.result.steps or not self._is_sound:
            return
        self.loggers.flush()
        best, result = self.best.record, self.result
        means = self.means if self.in_middle else Means()
        state = SavedState(counted, result.history, means.rows, means.totals, self.batches.per_epoch, self.is_ended, result.validations)
        self.folder.save(self.program, self.scope, state, best=None if best is None else best.step)

    def _counted(self) -> int:
        """Return the step counter of the scope, read in place so that the next step need not check all variables."""
        with lock_of_writing(self.scope):
            found = self.scope.find_var(COUNTER)
            return 0 if found is None else int(found.held)  # type: ignore[call-overload]

    @property
    def _is_sound(self) -> bool:
        return self.last_good is None or self.last_good.is_sound()

    @property
    def _unit(self) -> str:
        """The word for rows in progress displays: "images" or "rows"."""
        return "images" if any(var.name == "image" for var in self.program.main.inputs) else "rows"

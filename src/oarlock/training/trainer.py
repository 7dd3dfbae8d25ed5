"""`train`: make a training program of a cost, and drive it over data.

All that a run is - parameters, optimizer state, how many steps were taken, batch size, seed - is in the
program and its scope, so a saved training program goes on, bit for bit, where it stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy

from oarlock.errors import ArgumentError, ProgramError, ScopeError
from oarlock.io.model import Model
from oarlock.ir.content_hash import content_hash
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER
from oarlock.ir.program import Program, Training
from oarlock.ir.var import Var
from oarlock.metric.state import reset
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.sgd import SGD
from oarlock.passes.pruning import prune
from oarlock.registry.creator import describe_value
from oarlock.runtime.executor import Backend, Executor, require_backend
from oarlock.runtime.initialization import init
from oarlock.runtime.ownership import require_own, states_of
from oarlock.runtime.place import Place
from oarlock.runtime.process import configure_process
from oarlock.runtime.scope import Scope
from oarlock.training.batches import Batches, rows_of
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.metrics import LossWatch, Means, leave, metrics_in, taken_up
from oarlock.training.progress import Display, SilentDisplay, select_branch_display

__all__ = ["EpochRecord", "TrainingResult", "train"]


@dataclass(frozen=True)
class EpochRecord:
    """One pass over the data: means over its rows, by label, and the values of metrics; `validation` likewise, empty where there was none.

    A pass that was taken up in its middle is averaged whole, since a run that stops leaves its sums. Of one that was saved before
    that was so, the means are of the rows that were left.
    """

    epoch: int
    training: dict[str, float]
    validation: dict[str, float]


@dataclass
class TrainingResult:
    """The result of training: the training program, the scope it ran in, and the measurements of each epoch.

    `ol.save_model(result, path)` saves it to be continued; `ol.save_model(predict, result.parameters, path)`
    saves the program that predicts. `steps` counts the steps of the program's whole life.
    """

    program: Program
    parameters: Scope
    history: list[EpochRecord] = field(default_factory=list)
    steps: int = 0


def train(
    cost: Var | Model | TrainingResult,
    data: Mapping[str, object] | None = None,
    *,
    optimizer: Optimizer | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    validate: Mapping[str, object] | None = None,
    show: Mapping[str, Var] | None = None,
    steps: int | None = None,
    scope: Scope | None = None,
    place: Place | None = None,
    progress: bool | Display = True,
    tune: bool = True,
    backend: Backend | Literal["none"] | None = None,
) -> TrainingResult:
    """Lower `cost` on `data`, and return the parameters and what each epoch measured.

    `cost` is one float of a program, which stays as it is: a copy of it, with gradients and updates, is what
    runs. Or it is a training program that was loaded, or a result of this function, which goes on where it
    stopped. `data` is a dict of arrays with the rows first; None where the inputs carry their values, and then
    an epoch is one step. `optimizer` is SGD(0.01), `epochs` 1 and `batch_size` 32 unless said otherwise.
    `validate` is data to measure on after each epoch. `show` names further variables to report: their means over rows are, and of what
    `ol.metric` made, which begins anew with each pass over data, the value after the last batch. `steps` ends
    the run early, after so many more steps. `scope` receives the parameters, and keeps those it has. A run that raised in it goes on
    when it is asked for once more; that of another program is refused, and `scope.new_scope()` trains its parameters beside it. `progress`
    is False for silence. With `tune`, the process is set up for kernels first, all of it: `ol.configure_process` says how.
    `backend` is that of the executor. It is saved with the run, which goes on with it, until another one is given, or "none".

    A loss that is no number, or infinite, is warned of once, with the step and what else is not finite; so is that of `validate`, once. The
    run goes on.
    `warnings.simplefilter("error", RuntimeWarning)` lets it raise instead.

    Raises FeedError, ArgumentError, ProgramError, ScopeError or GradientError; a step that raises changes nothing. Ctrl-C lets the step
    end, for a second at most, and raises a KeyboardInterrupt whose `result` is what was trained.
    """
    if steps is not None:
        _require_count("steps", steps, least=0)
    if tune:
        configure_process()
    if isinstance(cost, Var):
        rows = 32 if batch_size is None else _require_count("batch_size", batch_size)
        drive = Training(rows, 1 if epochs is None else _require_count("epochs", epochs), _chosen(backend))
        executor = Executor(place, backend=require_backend(drive.backend))
        program = _training_program(cost, optimizer, show or {}, drive.batch_size)
        scope = Scope() if scope is None else scope
    else:
        if scope is not None:
            raise ArgumentError("a training program has its parameters already; scope is for a cost")
        program, scope = _continued(cost, optimizer, show, batch_size)
        drive, executor = _driven_on(cost, place, epochs, backend)
    batches = Batches.of({} if data is None else data, program, drive.batch_size)
    held_out = None if validate is None else Batches.of(validate, program, max(256, drive.batch_size))
    program.training = drive
    if isinstance(cost, Var):
        _take_up(program, scope, drive.epochs, batches.per_epoch)
    init(program, scope)
    display = select_branch_display() if progress is True else SilentDisplay() if progress is False else progress
    return _run(program, scope, batches, held_out, steps, executor, display)


def _training_program(cost: Var, optimizer: Optimizer | None, show: Mapping[str, Var], batch_size: int) -> Program:
    """A copy of the program of `cost` that updates its parameters. What is made alike is one run: after an error, it goes on."""
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"optimizer is one such as ol.optimizer.Adam(1e-3), not {describe_value(optimizer)}")
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError('show is a dict of variables by their labels, such as {"accuracy": accuracy}')
    if "loss" in show:
        raise ArgumentError('show: "loss" is what the cost is called; give the variable another label', given=[show["loss"].describe()])
    if cost.block.program.is_training:
        if optimizer is not None:
            raise ProgramError("the program has an optimizer already", hint="leave out `optimizer`, or do not call minimize yourself")
        program = cost.block.program.clone()
        program.targets = {"loss": program.main.var(cost.name)} | {label: program.main.var(var.name) for label, var in show.items()}
    else:
        program = prune(cost.block.program, {"loss": cost, **show})
        with program:
            (optimizer or SGD()).minimize(program.targets["loss"])
        program.lineage = f"{content_hash(program)} by {batch_size}"
    return program


def _take_up(program: Program, scope: Scope, epochs: int, per_epoch: int) -> None:
    """See that `program` may train in `scope`: that what is there is its own, and not done.

    Raises ScopeError. Steps that a scope around it counts are those of another run, which trains the same parameters.
    """
    counted = scope.find_var(COUNTER)
    if counted is None or not counted.is_set or not int(counted.value):  # type: ignore[call-overload]
        return
    if scope.find_local_var(COUNTER) is not counted:
        program.lineage = program.serial
        return
    require_own(program, scope, states_of(program), new=True)
    done, total = int(counted.value), epochs * per_epoch  # type: ignore[call-overload]
    if done >= total:
        raise ScopeError(
            f"the scope holds this run already, and it is done: {done} steps, of {total} in {epochs} epoch{'' if epochs == 1 else 's'}",
            location=here(),
            hint="more epochs; or scope.new_scope(), for a run of its own on the same parameters",
        )


def _continued(
    model: Model | TrainingResult, optimizer: Optimizer | None, show: Mapping[str, Var] | None, batch_size: int | None
) -> tuple[Program, Scope]:
    """The program and scope of a run to be taken up. A saved run keeps its optimizer and its batch size."""
    if not isinstance(model, Model | TrainingResult):
        raise ArgumentError(f"train takes a cost, or a model or result to go on with, not {describe_value(model)}")
    program = model.program
    if not program.is_training or program.training is None:
        raise ArgumentError("this model has no training program", hint="save one with ol.save_model(result, path)")
    if optimizer is not None or show:
        raise ArgumentError("a training program has its optimizer and its targets already; only data and epochs are asked for")
    if batch_size not in (None, program.training.batch_size):
        raise ArgumentError(f"this run has a batch size of {program.training.batch_size}; another would not be the same run")
    return program, model.scope if isinstance(model, Model) else model.parameters


def _driven_on(model: Model | TrainingResult, place: Place | None, epochs: int | None, backend: str | None) -> tuple[Training, Executor]:
    """How a run to be taken up is driven from now on, and by which executor: as before, but for what is given."""
    drive = model.program.training
    assert drive is not None
    if epochs is not None:
        drive = replace(drive, epochs=_require_count("epochs", epochs))
    if backend is not None:
        drive = replace(drive, backend=_chosen(backend))
    try:
        return drive, Executor(place, limits=model.limits if isinstance(model, Model) else None, backend=require_backend(drive.backend))
    except ArgumentError as error:
        if backend is None and drive.backend is not None:
            error.hint = f'the saved run names the backend "{drive.backend}": give another, or "none"'
        raise


def _chosen(backend: str | None) -> str | None:
    return None if backend == "none" else backend


def _require_count(name: str, value: object, *, least: int = 1) -> int:
    """`value` as a whole number from `least` to what a file can hold. Raises ArgumentError."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**32:
        raise ArgumentError(f"{name} is a whole number from {least}, not {value!r:.60}")
    return value


def _run(
    program: Program, scope: Scope, batches: Batches, held_out: Batches | None, steps: int | None, executor: Executor, display: Display
) -> TrainingResult:
    assert program.training is not None
    done, total = int(scope[COUNTER]), program.training.epochs * batches.per_epoch  # type: ignore[call-overload]
    stop = total if steps is None else min(total, done + steps)
    result = TrainingResult(program, scope, steps=done)
    means = taken_up(program, scope, done)
    metrics = metrics_in(program)
    loss = LossWatch(program, scope)
    try:
        with Stopping() as stopping:
            display.start(done=done, total=stop, epochs=program.training.epochs, unit=_unit(program))
            try:
                while result.steps < stop:
                    stopping.check()
                    epoch, number = divmod(result.steps, batches.per_epoch)
                    if number == 0 or result.steps == done:
                        order = batches.order(epoch)
                    if number == 0:
                        means = Means(metrics)
                    feed = batches.batch(order, number)
                    values = executor.run(program, feed, list(program.targets), scope=scope, training=True)
                    result.steps += 1
                    rows = rows_of(feed)
                    means.add(program.targets, values, rows)
                    if not means.are_finite:
                        loss.warn(values, feed, step=result.steps, epoch=epoch + 1)
                    display.step(epoch=epoch + 1, rows=rows, metrics=means.values)
                    if number + 1 == batches.per_epoch:
                        reset(program, scope)
                        validation = {} if held_out is None else _measure(result, epoch + 1, held_out, executor, stopping, loss)
                        result.history.append(EpochRecord(epoch + 1, means.values, validation))
                        shown = means.values | {f"validation {label}": value for label, value in validation.items()}
                        display.epoch(epoch=epoch + 1, metrics=shown)
            finally:
                if result.steps % batches.per_epoch:
                    leave(means, program, scope, result.steps)
                display.stop()
    except KeyboardInterrupt as interrupt:
        result.steps = int(scope[COUNTER])  # type: ignore[call-overload]  the last step may have been finished, and not counted
        raise Interrupted(result) from interrupt
    return result


def _measure(
    result: TrainingResult, epoch: int, batches: Batches, executor: Executor, stopping: Stopping, loss: LossWatch
) -> dict[str, float]:
    """The means of the targets over data, at the end of an epoch, without training on it."""
    program = result.program
    means, order = Means(metrics_in(program)), numpy.arange(batches.rows)
    try:
        for number in range(batches.per_epoch):
            stopping.check()
            feed = batches.batch(order, number)
            values = executor.run(program, feed, list(program.targets), scope=result.parameters, training=False)
            means.add(program.targets, values, rows_of(feed))
            if not means.are_finite:
                loss.warn(values, feed, step=result.steps, epoch=epoch, validation=True)
    finally:
        reset(program, result.parameters)
    return means.values


def _unit(program: Program) -> str:
    """The word for the rows of the data."""
    return "images" if any(var.name == "image" for var in program.main.inputs) else "rows"

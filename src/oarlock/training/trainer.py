"""`train`: make a training program from a cost, and run it over data.

The whole state of a run (parameters, optimizer state, step count, batch size, seed) is stored in the program and its scope, so a saved
training program resumes bit-identically.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from oarlock.data.recognition import open_data
from oarlock.data.selection import columns_of
from oarlock.data.source import Source, Transform
from oarlock.errors import ArgumentError, ScopeError
from oarlock.io.model import Model
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER
from oarlock.ir.program import Program, Training
from oarlock.ir.var import Var
from oarlock.optimizer.optimizer import Optimizer
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_count
from oarlock.runtime.executor import Backend, Executor, require_backend
from oarlock.runtime.initialization import init
from oarlock.runtime.ownership import require_own, states_of
from oarlock.runtime.place import Place
from oarlock.runtime.process import configure_process
from oarlock.runtime.scope import Scope
from oarlock.runtime.workers import connect
from oarlock.training.batches import Batches, open_batches
from oarlock.training.description import describe_run
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.invocation import current_invocation
from oarlock.training.loggers.isolation import Loggers
from oarlock.training.loggers.protocol import Logger
from oarlock.training.loggers.selection import open_loggers
from oarlock.training.loop import Loop
from oarlock.training.metric_log import require_loggable
from oarlock.training.new_run import MOST, NewRun, backend_setting, training_program, training_settings
from oarlock.training.progress import Display, SilentDisplay, report_run_folder, select_display
from oarlock.training.records import EpochRecord, TrainingResult
from oarlock.training.run_folder import Run
from oarlock.training.together import open_folder, require_one_start

__all__ = ["train"]


def train(
    cost: Var | Model | TrainingResult,
    data: object = None,
    *,
    optimizer: Optimizer | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    validate: object = None,
    validate_every: int | None = None,
    show: Mapping[str, Var] | None = None,
    transform: Transform | None = None,
    steps: int | None = None,
    run: Run | str | os.PathLike[str] | None = None,
    early_stopping: EarlyStopping | None = None,
    loggers: Iterable[Logger | str] = (),
    on_step: Callable[[int, dict[str, float]], object] | None = None,
    on_epoch: Callable[[EpochRecord], object] | None = None,
    not_finite: Literal["stop", "warn"] = "stop",
    scope: Scope | None = None,
    place: Place | Sequence[Place] | None = None,
    shard_optimizer: bool = False,
    sync_batch_norm: bool = True,
    progress: bool | Display = True,
    tune: bool = True,
    backend: Backend | Literal["none"] | None = None,
) -> TrainingResult:
    """Train by minimizing `cost` on `data`; return the parameters and the metrics of each epoch.

    `cost` is a scalar float variable of a program, which is not modified: training runs a copy with gradients and updates. To continue
    training, pass a loaded training program or a result of this function instead. `data` is a dict of arrays with the rows on the first
    axis, or anything that `ol.data.read` accepts or returns; None if the inputs store their own values, and then an epoch is one step.
    Defaults, unless `data` (such as a `DataLoader`) sets its own: `optimizer` SGD(0.01), `epochs` 1, `batch_size` 32. `transform` is a
    function applied to each batch of `data` before it is fed (`ol.data.Source`). `steps` ends the run after that many further steps.
    `scope` receives the parameters, and keeps the values that it already has. If a run raised in it, calling `train` again with the same
    scope continues that run; a scope used by another program is refused, and `scope.new_scope()` trains its parameters independently.
    `progress=False` prints nothing.

    `validate` is the validation data, measured after each epoch, or after every `validate_every` steps, neither shuffled nor transformed
    by `transform`. `show` maps labels to further variables to report. Plain variables are averaged over rows; `ol.metric` metrics are
    reset at each pass and reported after the last batch.

    `run` is a run folder, a path or an `ol.training.Run`: it stores the program, metrics and checkpoints, written in the background. If
    the folder contains a run, training resumes from its last checkpoint, bit-identically, so an interrupted script can simply be run
    again. `early_stopping` ends the run depending on its metrics. `loggers` receive the metrics: TensorBoard, MLflow, W&B, trackio or a
    custom logger (`ol.training.loggers`), as objects or as strings such as "tensorboard:runs/digits". `on_step` is called after each step
    with its number and the values of its targets, `on_epoch` after each epoch with its record; the run ends if `on_epoch` returns True.

    `tune=True` first configures the whole process for kernels (`ol.configure_process`). `backend` is the backend of the executor. It is
    saved with the run and used again on resuming, until another one or "none" is given.

    If the environment defines several workers, as torchrun does, they train together (`ol.passes.data_parallel`): each gets a part of
    every batch, and all have the parameters that a single worker would have. The first worker writes the run folder, which all read, and
    shows progress. If a worker ends, the others raise WorkerError; restart all of them to resume from the folder. `shard_optimizer=True`
    splits the optimizer state among the workers (`ol.passes.shard_optimizer`), also in checkpoints, which any number of workers can
    resume; the result is complete, but the scope that `on_step` sees has only this worker's part. `sync_batch_norm=False` makes batch
    normalization use the statistics of each worker's own rows.

    If the loss, or a parameter after an update, becomes NaN or infinite, the run stops with NotFiniteError in the state before that step.
    The error names the operator that produced the first such number, its source line and its inputs; its `result` is the training up to
    that point. This needs memory for a second copy of the state, taken now and then. Steps that `LossScaling` skips are not errors. With
    `not_finite="warn"`, training warns once and continues without keeping a backup. A non-finite validation loss only ever warns, once.

    Raises FeedError, ArgumentError, ProgramError, ScopeError, GradientError or NotFiniteError; a step that raises changes nothing. Ctrl-C
    waits at most one second for the current step, then raises a KeyboardInterrupt whose `result` is the training so far.
    """
    if steps is not None:
        require_count("steps", steps, least=0)
    if validate_every is not None:
        require_count("validate_every", validate_every)
        if validate is None:
            raise ArgumentError("validate_every needs data to validate on", hint="validate=...")
    if not_finite not in ("stop", "warn"):
        raise ArgumentError(f'not_finite must be "stop" or "warn", not {not_finite!r:.60}')
    workers = connect()
    worker = workers.index, workers.count
    active_loggers = Loggers(open_loggers(loggers if workers.index == 0 else ()))
    invocation = current_invocation()
    run = invocation.run_of(run)
    if tune:
        configure_process()
    source, held_out_source = _opened(data, transform), None if validate is None else _opened(validate, None)
    own = source.batch_size if isinstance(source, Source) else None
    with contextlib.ExitStack() as stack:
        folder = None if run is None else stack.enter_context(open_folder(run if isinstance(run, Run) else Run(run), workers))
        saved, state = (None if folder is None else folder.find_saved()) or (None, None)
        if saved is not None and scope is not None:
            raise ArgumentError(f'"{folder.path}" contains a run with its own parameters; scope can only be given for a new run')  # type: ignore[union-attr]
        prediction = getattr(cost, "prediction", None) or getattr(saved, "prediction", None)
        if isinstance(cost, Var):
            drive = training_settings(own if batch_size is None else batch_size, epochs, backend)
            executor = Executor(place, backend=require_backend(drive.backend))
            program = training_program(cost, optimizer, show or {}, drive.batch_size)
            if saved is not None:
                folder.require_same(saved.program, program)  # type: ignore[union-attr]
                cost, optimizer, show, batch_size = saved, None, None, drive.batch_size
        elif scope is not None:
            raise ArgumentError("a training program has its own parameters; scope can only be given with a cost")
        elif saved is not None and isinstance(cost, Model | TrainingResult):
            folder.require_same(saved.program, cost.program)  # type: ignore[union-attr]
            if not isinstance(cost, NewRun):
                folder.require_state(saved, cost)  # type: ignore[union-attr]
            cost = saved
        if isinstance(cost, Var):
            scope = Scope() if scope is None else scope
        else:
            program, scope = _program_to_continue(cost, optimizer, show, own if batch_size is None else batch_size)
            drive, executor = _settings_to_continue(cost, place, epochs, backend)
        if folder is not None:
            require_loggable(program.targets)
            folder.prediction = prediction
            fed = {var.name for var in program.main.inputs}
            folder.columns = {name: taken for name, taken in columns_of(getattr(source, "rows", None)).items() if name in fed}
        batches = open_batches(source, program, drive.batch_size, worker=worker)
        held_out = (
            None
            if held_out_source is None
            else open_batches(held_out_source, program, max(256, drive.batch_size), shuffle=False, worker=worker)
        )
        if state is not None and None not in (state.per_epoch, batches.per_epoch) and state.per_epoch != batches.per_epoch:
            raise ArgumentError(
                f'the run in "{folder.path}" has {state.per_epoch} batches per epoch, but the data have {batches.per_epoch}',  # type: ignore[union-attr]
                hint="use another folder to start a new run",
            )
        program.training = drive
        if isinstance(cost, Var):
            _require_trainable(program, scope, drive.epochs, batches.per_epoch if isinstance(batches, Batches) else None)
        init(program, scope)
        callbacks = early_stopping, on_step, on_epoch, folder, active_loggers
        shared = validate_every, not_finite == "stop", shard_optimizer, sync_batch_norm
        loop = Loop(program, scope, batches, held_out, executor, *callbacks, *shared)
        named = str(data) if isinstance(data, str | os.PathLike) else type(data).__name__
        command, settings = invocation.command or sys.argv, invocation.in_effect
        if folder is not None:
            loop.restore_progress(state)
        require_one_start(workers, program, loop.result.steps)
        if folder is not None:
            start = None if isinstance(cost, Var | NewRun) else scope
            folder.begin(program, steps=loop.result.steps, data=named, command=command, settings=settings, start=start)
        progress = progress if workers.index == 0 else False
        display = select_display(kind=invocation.progress) if progress is True else SilentDisplay() if progress is False else progress
        about = describe_run(program, named, command) if folder is None else {**folder.about, "folder": str(folder.path.resolve())}
        shown = contextlib.nullcontext()
        if folder is not None and workers.index == 0:
            shown = report_run_folder(folder.path, display, loop.has_all_epochs, predicts=folder.prediction is not None)
        with shown, active_loggers.running({**about, "settings": settings}, loop.result.steps, loop.summary):
            result = loop.run(steps, display)
            invocation.on_result(result)
            return result


def _opened(data: object, transform: Transform | None) -> "Mapping[str, object] | Source":
    """Return the data of a run as a source, or a dict without a transform unchanged. Raises ArgumentError for other types."""
    if data is None:
        return {}
    if isinstance(data, Mapping) and transform is None:
        return data
    source = open_data(data)
    return source if transform is None else replace(source, transform=transform)


def _require_trainable(program: Program, scope: Scope, epochs: int, per_epoch: int | None) -> None:
    """Check that `program` may train in `scope`: the state in it must belong to this program, and the run must not be finished.

    Steps counted in a parent scope belong to another run that trains the same parameters. Raises ScopeError.
    """
    counted = scope.find_var(COUNTER)
    if counted is None or not counted.is_set or not int(counted.value):  # type: ignore[call-overload]
        return
    if scope.find_local_var(COUNTER) is not counted:
        program.lineage = program.serial
        return
    require_own(program, scope, states_of(program), new=True)
    if per_epoch is None:
        return
    done, total = int(counted.value), epochs * per_epoch  # type: ignore[call-overload]
    if done >= total:
        raise ScopeError(
            f"the run in this scope is finished: {done} of {total} steps in {epochs} epoch{'' if epochs == 1 else 's'}",
            location=here(),
            hint="give more epochs, or use scope.new_scope() to start another run on the same parameters",
        )


def _program_to_continue(
    model: Model | TrainingResult, optimizer: Optimizer | None, show: Mapping[str, Var] | None, batch_size: int | None
) -> tuple[Program, Scope]:
    """Return the program and scope of a run to continue, which keeps its optimizer and batch size. Raises ArgumentError."""
    if not isinstance(model, Model | TrainingResult):
        raise ArgumentError(f"train takes a cost, or a model or result to continue, not {describe_value(model)}")
    program = model.program
    if not program.is_training or program.training is None:
        raise ArgumentError("this model has no training program", hint="save one with ol.save_model(result, path)")
    if optimizer is not None or show:
        raise ArgumentError("a training program has its own optimizer and targets; optimizer and show cannot be given")
    if batch_size not in (None, program.training.batch_size):
        raise ArgumentError(f"this run has a batch size of {program.training.batch_size}, which cannot be changed")
    return program, model.scope if isinstance(model, Model) else model.parameters


def _settings_to_continue(
    model: Model | TrainingResult, place: Place | Sequence[Place] | None, epochs: int | None, backend: str | None
) -> tuple[Training, Executor]:
    """Return the settings and the executor of a run to continue: the saved settings, updated by the given ones."""
    drive = model.program.training
    assert drive is not None
    if epochs is not None:
        drive = replace(drive, epochs=require_count("epochs", epochs, most=MOST))
    if backend is not None:
        drive = replace(drive, backend=backend_setting(backend))
    try:
        return drive, Executor(place, limits=model.limits if isinstance(model, Model) else None, backend=require_backend(drive.backend))
    except ArgumentError as error:
        if backend is None and drive.backend is not None:
            error.hint = f'the saved run uses the backend "{drive.backend}": give another one, or "none"'
        raise

"""`train`: make a training program of a cost, and drive it over data.

All that a run is - parameters, optimizer state, how many steps were taken, batch size, seed - is in the
program and its scope, so a saved training program goes on, bit for bit, where it stopped.
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
from oarlock.training.batches import Batches
from oarlock.training.description import describe_run
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.invocation import current_invocation
from oarlock.training.loggers.isolation import Loggers
from oarlock.training.loggers.protocol import Logger
from oarlock.training.loggers.selection import open_loggers
from oarlock.training.loop import Loop
from oarlock.training.metric_log import require_loggable
from oarlock.training.new_run import MOST, NewRun, chosen, driven, training_program
from oarlock.training.progress import Display, SilentDisplay, announced, select_display
from oarlock.training.records import EpochRecord, TrainingResult
from oarlock.training.replay import open_batches
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
    """Lower `cost` on `data`, and return the parameters and what each epoch measured.

    `cost` is one float of a program, which stays as it is: a copy of it, with gradients and updates, is what
    runs. Or it is a training program that was loaded, or a result of this function, which goes on where it
    stopped. `data` is a dict of arrays with the rows first, or whatever else `ol.data.read` takes, or what it gives; None where the inputs
    carry their values, and then an epoch is one step. `optimizer` is SGD(0.01), `epochs` 1 and `batch_size` 32 unless said otherwise, by a
    `DataLoader` for instance. `transform` is a function of each batch of `data`, before it is fed (`ol.data.Source`).
    `validate` is data to measure on after each epoch, or after every `validate_every` steps, as it stands. `show` names further variables
    to report: their means over rows are, and of what `ol.metric` made, which begins anew with each pass over data, the value after the last
    batch. `steps` ends the run early, after so many more steps. `scope` receives the parameters, and keeps those it has. A run that raised
    in it goes on when it is asked for once more; that of another program is refused, and `scope.new_scope()` trains its parameters beside
    it. `progress` is False for silence.

    `run` is a folder in which the run is kept, a path or an `ol.training.Run`: its program, what it measured, and checkpoints, written
    beside the training. A folder that holds a run already goes on with it where its last checkpoint is, with the same bits as if it had
    never stopped; so a script that was killed is started once more. `early_stopping` ends the run by what it measured. `loggers` are told
    of it: TensorBoard, MLflow, W&B, trackio or one of your own (`ol.training.loggers`), also by texts such as "tensorboard:runs/digits".
    `on_step` is called after each step with its number and the values of its targets, `on_epoch` after each epoch with its record; the run
    ends after an epoch for which that returns True.

    With `tune`, the process is set up for kernels first, all of it: `ol.configure_process` says how. `backend` is that of the executor. It
    is saved with the run, which goes on with it, until another one is given, or "none".

    Where the environment names several workers, as torchrun sets it, they train together (`ol.passes.data_parallel`): each is given its
    part of every minibatch, and all have the parameters that one would have. The first of them keeps the folder of the run, which all
    read, and shows progress. Where a worker ends, the others raise WorkerError; all are started again, and go on from the folder. With
    `shard_optimizer`, each worker keeps a share of what the optimizer keeps (`ol.passes.shard_optimizer`), also in the checkpoints, from
    which any number of workers goes on; the result is whole, and what `on_step` finds in its parameters' scope is this worker's. Without
    `sync_batch_norm`, batch normalization takes the statistics of each worker's rows alone.

    A loss that is NaN or infinite, or a parameter that a step makes so, stops the run before that step, of which nothing is kept, by a
    NotFiniteError: it names the operator that first made such a number, its line and what it was given. Its `result` is what was trained
    until then. For that the state is copied now and then, which takes its memory once more. Steps that `LossScaling` skips are good ones.
    With `not_finite="warn"`, the run warns once, and goes on without a copy. That of `validate` is warned of once in either case.

    Raises FeedError, ArgumentError, ProgramError, ScopeError, GradientError or NotFiniteError; a step that raises changes nothing. Ctrl-C
    lets the step end, for a second at most, and raises a KeyboardInterrupt whose `result` is what was trained.
    """
    if steps is not None:
        require_count("steps", steps, least=0)
    if validate_every is not None:
        require_count("validate_every", validate_every)
        if validate is None:
            raise ArgumentError("validate_every needs data to validate on", hint="validate=...")
    if not_finite not in ("stop", "warn"):
        raise ArgumentError(f'not_finite is "stop" or "warn", not {not_finite!r:.60}')
    workers = connect()
    worker = workers.index, workers.count
    told = Loggers(open_loggers(loggers if workers.index == 0 else ()))
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
            raise ArgumentError(f'"{folder.path}" holds a run already, which has its parameters; scope is for a new one')  # type: ignore[union-attr]
        prediction = getattr(cost, "prediction", None) or getattr(saved, "prediction", None)
        if isinstance(cost, Var):
            drive = driven(own if batch_size is None else batch_size, epochs, backend)
            executor = Executor(place, backend=require_backend(drive.backend))
            program = training_program(cost, optimizer, show or {}, drive.batch_size)
            if saved is not None:
                folder.require_same(saved.program, program)  # type: ignore[union-attr]
                cost, optimizer, show, batch_size = saved, None, None, drive.batch_size
        elif scope is not None:
            raise ArgumentError("a training program has its parameters already; scope is for a cost")
        elif saved is not None and isinstance(cost, Model | TrainingResult):
            folder.require_same(saved.program, cost.program)  # type: ignore[union-attr]
            if not isinstance(cost, NewRun):
                folder.require_state(saved, cost)  # type: ignore[union-attr]
            cost = saved
        if isinstance(cost, Var):
            scope = Scope() if scope is None else scope
        else:
            program, scope = _continued(cost, optimizer, show, own if batch_size is None else batch_size)
            drive, executor = _driven_on(cost, place, epochs, backend)
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
                f'the run in "{folder.path}" has {state.per_epoch} batches in an epoch, and these data have {batches.per_epoch}',  # type: ignore[union-attr]
                hint="another folder begins a new run",
            )
        program.training = drive
        if isinstance(cost, Var):
            _take_up(program, scope, drive.epochs, batches.per_epoch if isinstance(batches, Batches) else None)
        init(program, scope)
        heard = early_stopping, on_step, on_epoch, folder, told
        shared = validate_every, not_finite == "stop", shard_optimizer, sync_batch_norm
        loop = Loop(program, scope, batches, held_out, executor, *heard, *shared)
        named = str(data) if isinstance(data, str | os.PathLike) else type(data).__name__
        command, settings = invocation.command or sys.argv, invocation.in_effect
        if folder is not None:
            loop.go_on(state)
        require_one_start(workers, program, loop.result.steps)
        if folder is not None:
            start = None if isinstance(cost, Var | NewRun) else scope
            folder.begin(program, steps=loop.result.steps, data=named, command=command, settings=settings, start=start)
        progress = progress if workers.index == 0 else False
        display = select_display(kind=invocation.progress) if progress is True else SilentDisplay() if progress is False else progress
        about = describe_run(program, named, command) if folder is None else {**folder.about, "folder": str(folder.path.resolve())}
        shown = contextlib.nullcontext()
        if folder is not None and workers.index == 0:
            shown = announced(folder.path, display, loop.has_all_epochs, predicts=folder.prediction is not None)
        with shown, told.running({**about, "settings": settings}, loop.result.steps, loop.summary):
            result = loop.run(steps, display)
            invocation.on_result(result)
            return result


def _opened(data: object, transform: Transform | None) -> "Mapping[str, object] | Source":
    """The data of a run: a dict as it is, which is checked whole, or a source. Raises ArgumentError for what is neither."""
    if data is None:
        return {}
    if isinstance(data, Mapping) and transform is None:
        return data
    source = open_data(data)
    return source if transform is None else replace(source, transform=transform)


def _take_up(program: Program, scope: Scope, epochs: int, per_epoch: int | None) -> None:
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
    if per_epoch is None:
        return
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


def _driven_on(
    model: Model | TrainingResult, place: Place | Sequence[Place] | None, epochs: int | None, backend: str | None
) -> tuple[Training, Executor]:
    """How a run to be taken up is driven from now on, and by which executor: as before, but for what is given."""
    drive = model.program.training
    assert drive is not None
    if epochs is not None:
        drive = replace(drive, epochs=require_count("epochs", epochs, most=MOST))
    if backend is not None:
        drive = replace(drive, backend=chosen(backend))
    try:
        return drive, Executor(place, limits=model.limits if isinstance(model, Model) else None, backend=require_backend(drive.backend))
    except ArgumentError as error:
        if backend is None and drive.backend is not None:
            error.hint = f'the saved run names the backend "{drive.backend}": give another, or "none"'
        raise

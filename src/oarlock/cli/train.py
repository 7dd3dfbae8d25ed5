"""`oarlock train`: run a training script, train the model that a script makes, or continue a saved training program."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.column_option import Columns
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination, is_child
from oarlock.cli.progress_options import Plain, Quiet, shown
from oarlock.cli.script_run import run_script
from oarlock.cli.trace_option import ProfilePath, ProfileSteps, traced
from oarlock.cli.train_call import refuse_arguments, require_folder_of, require_program_file, resumed, stopped, train_model
from oarlock.cli.untrusted_run import Untrusted
from oarlock.cli.workers import Workers, start_workers
from oarlock.errors import ArgumentError, NotFiniteError
from oarlock.io.model import load_model, save_model
from oarlock.runtime.process import configure_process
from oarlock.runtime.workers import is_first_worker, is_worker
from oarlock.training.configuration import Given, read_configuration
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.invocation import Invocation
from oarlock.training.options import TrainOptions
from oarlock.training.records import TrainingResult
from oarlock.training.sent_model import Sending, receive

__all__ = ["train"]

_KEPT, _HOW = "What is kept and told", "How it trains"  # parts of the help


def train(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="SCRIPT.py | PROGRAM.safetensors", help="A script, or a saved training program.")],
    data: Annotated[
        str | None,
        typer.Option(help="What to train on: digits:train, another of `oarlock datasets`, table.csv, table.csv:train, a folder of images."),
    ] = None,
    validate: Annotated[str | None, typer.Option(help="What it is measured on after each epoch: digits:test, table.csv:test.")] = None,
    validate_every: Annotated[
        int | None, typer.Option(help="Steps between measurements; an epoch, unless given.", rich_help_panel=_HOW)
    ] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    epochs: Annotated[int | None, typer.Option(help="Train up to this many epochs in all; a saved program knows how many it had.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows in a step; 32, unless given.")] = None,
    optimizer: Annotated[
        str | None, typer.Option(help='adam, "AdamW(1e-3, weight_decay=0.1)"; SGD, unless given or in the script.')
    ] = None,
    lr: Annotated[float | None, typer.Option(help="The learning rate of the optimizer.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many further steps.", rich_help_panel=_HOW)] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Of the parts of the data, which rows :train and :test are, and of a script's model; the program's own, unless given.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Where to save the training program; where it came from, unless given. Of a script's model: what predicts.",
            rich_help_panel=_KEPT,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="A folder to keep the run in, and go on with one: what it measures, checkpoints. runs/NAME-1 for a script's model.",
            rich_help_panel=_KEPT,
        ),
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints; an epoch, unless given.", rich_help_panel=_KEPT)
    ] = None,
    log: Annotated[
        list[str],
        typer.Option(
            help="Who is told what is measured: tensorboard:FOLDER, mlflow:ADDRESS, wandb:PROJECT, trackio:PROJECT.", rich_help_panel=_KEPT
        ),
    ] = [],  # noqa: B006  typer copies it
    backend: Annotated[
        str | None,
        typer.Option(
            help="inductor: PyTorch's compiler compiles regions of the plan; none: no longer. As saved, if not given.", rich_help_panel=_HOW
        ),
    ] = None,
    place: Annotated[
        str | None, typer.Option(help="Where it runs: cpu, gpu (each worker at its own), gpu:1; several with commas.", rich_help_panel=_HOW)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings by TOML: options in the section train, and what a script declares.", rich_help_panel=_HOW)
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, such as train.lr=3e-4. Can be repeated.", rich_help_panel=_HOW),
    ] = [],  # noqa: B006  typer copies it
    profile: ProfilePath = None,
    profile_steps: ProfileSteps = 10,
    workers: Workers = 1,
    shard_optimizer: Annotated[
        bool,
        typer.Option("--shard-optimizer", help="Of several workers, each keeps a share of what the optimizer keeps.", rich_help_panel=_HOW),
    ] = False,
    sync_batch_norm: Annotated[
        bool,
        typer.Option(help="Of several workers, batch normalization takes the rows of all; or each takes its own.", rich_help_panel=_HOW),
    ] = True,
    plain: Plain = False,
    quiet: Quiet = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Train a model.

    The model that a script makes, on data that is given; the run is kept in a folder, runs/model-1:

    [bold]oarlock train model.py --data table.csv:train --validate table.csv:test --columns label=kind --columns "x=*" --optimizer adam[/]

    The script calls [bold]cost[/] what is lowered, [bold]show[/] a dict of what is measured, [bold]predict[/] what --save saves and
    `oarlock infer runs/model-1` computes.

    A script that trains by itself; what follows its name is the script's own:

    [bold]oarlock train examples/digits.py[/]

    A training program that [bold]ol.save_model(result, path)[/] saved: the same bits as if it had never stopped, none of its Python:

    [bold]oarlock train run.safetensors --data digits:train --epochs 30[/]

    A file of TOML may give options, in its section train, and the settings that a script declares by [bold]ol.settings[/]:

    [bold]oarlock train model.py --config train.toml --set train.lr=3e-4 --set hidden=32[/]

    [bold]--workers 2[/] trains by two processes; [bold]torchrun ... -m oarlock -- train ...[/] by those of several machines.

    Ctrl-C keeps what was trained so far, a run's in a checkpoint, and says how to go on; --save writes at the end. With
    [bold]--untrusted[/] nothing is shown until the run has ended, and a run that takes more than two seconds to hand back what it trained
    is ended without.
    """
    if not is_worker():  # the first of several looks itself, and the others may need none
        require_program_file(path)
    if workers != 1 and untrusted:
        raise ArgumentError("--untrusted runs one process, which may exchange nothing with others", hint="leave out --workers")
    configuration, progress = read_configuration(config, settings), shown(plain=plain, quiet=quiet)
    start_workers(workers)
    configure_process(keep_memory=not is_child())  # a stranger's file is held to the memory that it needs
    asked = {
        "data": data,
        "validate": validate,
        "validate_every": validate_every,
        "columns": columns,
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "lr": lr,
        "steps": steps,
        "seed": seed,
        "save": save,
        "run": run,
        "save_every": save_every,
        "log": log,
        "backend": backend,
        "place": place,
        "shard_optimizer": shard_optimizer or None,
        "sync_batch_norm": None if sync_batch_norm else False,
    }
    is_script = path.suffix == ".py"
    with Invocation(sys.argv, configuration, asked, progress) as invocation, traced(profile, profile_steps):
        if is_script and untrusted:
            raise ArgumentError("--untrusted is for saved programs; a script is Python, which can do anything")
        if is_script and not invocation.has("data"):  # it trains by itself, on every worker
            run_script(path, context.args, invocation)
        elif not is_first_worker():
            _train_received(path, context.args, invocation)
        else:
            with Sending() as sending:
                if is_script:
                    run_script(path, context.args, invocation, sending)
                else:
                    _train_saved(path, context.args, invocation, sending, untrusted=untrusted)


def _train_received(path: Path, arguments: list[str], invocation: Invocation) -> None:
    """Train what the first worker sends, and leave it to that one to speak of it; or run the script too."""
    received = receive()
    if received is None:
        sys.exit(1)
    if received.model is None:
        run_script(path, arguments, invocation)
        return
    given = {f"train.{name}": Given(value, "the first worker") for name, value in received.options.items()}
    with Invocation(sys.argv, given, progress=invocation.progress) as told:
        try:
            with Stopping(patience=0.0):
                train_model(received.model, told.options())
        except Interrupted:
            sys.exit(130)


def _train_saved(path: Path, arguments: list[str], invocation: Invocation, sending: Sending, *, untrusted: bool) -> None:
    """Train a saved program, and save it."""
    require_program_file(path)
    refuse_arguments(arguments)
    options = invocation.options()
    for name in ("batch_size", "optimizer", "lr"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"a saved program has its {name} already; --{name.replace('_', '-')} is for a script's model")
    if untrusted:
        _require_confined(options, invocation)
    if options.save_every is not None and options.run is None:
        raise ArgumentError("--save-every is for a run in a folder", hint="--run runs/one")
    if options.data is None:
        raise ArgumentError("a saved program needs --data", hint="--data digits:train")
    require_folder_of(options.save)
    saved = options.save or path

    def save(result: TrainingResult) -> None:
        save_model(result, destination(saved), columns=model.columns)
        if invocation.progress != "quiet":
            typer.echo(f"{result.steps} steps in all; saved {saved}")

    invocation.on_result = save
    try:
        with Stopping(patience=0.0):
            model = load_model(path, untrusted=untrusted)
            sending.send(model, options.given)
            train_model(model, options)
    except Interrupted as interrupt:
        save_model(interrupt.result, destination(saved), columns=model.columns)
        again = " ".join(
            ["oarlock train", shlex.quote(str(saved)), f"--data {shlex.quote(options.data)}"]
            + [f"--columns {shlex.quote(text)}" for text in options.columns]
            + ["--untrusted"] * untrusted
        )
        stopped(interrupt.result, again if options.run is None else resumed(options.run), saved)
    except NotFiniteError as error:
        save_model(error.result, destination(saved), columns=model.columns)
        if invocation.progress != "quiet":
            typer.echo(f"stopped after {error.result.steps} steps; saved {saved}")
        raise


def _require_confined(options: TrainOptions, invocation: Invocation) -> None:
    """Raise ArgumentError for what the child process of a stranger's program cannot do, or its parent does not hear of."""
    for name in ("run", "log"):
        if name in options.given:
            raise ArgumentError(f"--{name} is not for a stranger's program: the child process writes no file and has no network")
    if options.save is not None and "save" not in invocation.asked:
        raise ArgumentError("where the result is saved is said by --save, with --untrusted, and not by a file of settings")

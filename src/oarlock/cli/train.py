"""`oarlock train`: run a training script, train the model that a script defines, or continue a saved training program."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Columns, Imports, Plain, Quiet, progress_kind
from oarlock.cli.output_file import destination, is_child
from oarlock.cli.profile import ProfilePath, ProfileSteps, write_trace
from oarlock.cli.script_run import run_script
from oarlock.cli.train_call import exit_interrupted, refuse_arguments, require_folder_of, require_program_file, resume_command, train_model
from oarlock.cli.untrusted_run import Untrusted
from oarlock.cli.workers import Workers, start_workers
from oarlock.errors import ArgumentError, NotFiniteError
from oarlock.io.model import load_model, save_model
from oarlock.runtime.process import configure_process
from oarlock.runtime.workers import is_first_worker, is_worker
from oarlock.training.configuration import Given, read_configuration
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.invocation import Invocation, TrainOptions
from oarlock.training.records import TrainingResult
from oarlock.training.sent_model import Sending, receive

__all__ = ["train"]

_KEPT, _HOW = "Output", "Training"  # panels of --help


def train(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="SCRIPT.py | PROGRAM.safetensors", help="Script or saved training program.")],
    data: Annotated[
        str | None,
        typer.Option(help="Training data: digits:train, another name of `oarlock datasets`, table.csv, table.csv:train, an image folder."),
    ] = None,
    validate: Annotated[str | None, typer.Option(help="Validation data, evaluated after each epoch, for example digits:test.")] = None,
    validate_every: Annotated[int | None, typer.Option(help="Steps between validations. Default: one epoch.", rich_help_panel=_HOW)] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    epochs: Annotated[
        int | None, typer.Option(help="Total number of epochs, counting those that a saved program was already trained for.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step. Default: 32.")] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(help='adam, or with options: "AdamW(1e-3, weight_decay=0.1)". Default: the optimizer of the script, or SGD.'),
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the optimizer.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many further steps.", rich_help_panel=_HOW)] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the :train and :test split, and of a script's model. Default: the seed of the program.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Path of the saved training program; default: the input file. For a script's model: path of the prediction model.",
            rich_help_panel=_KEPT,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Run folder for metrics and checkpoints; an existing run is resumed. Default for a script's model: runs/NAME-1.",
            rich_help_panel=_KEPT,
        ),
    ] = None,
    save_every: Annotated[int | None, typer.Option(help="Steps between checkpoints. Default: one epoch.", rich_help_panel=_KEPT)] = None,
    log: Annotated[
        list[str],
        typer.Option(
            help="Metric logger: tensorboard:FOLDER, mlflow:ADDRESS, wandb:PROJECT, trackio:PROJECT. Repeatable.", rich_help_panel=_KEPT
        ),
    ] = [],  # noqa: B006  typer copies it
    backend: Annotated[
        str | None,
        typer.Option(
            help="inductor: compile parts of the plan with torch.compile; none: do not. Default: the saved setting.", rich_help_panel=_HOW
        ),
    ] = None,
    place: Annotated[
        str | None, typer.Option(help="Device: cpu, gpu (one per worker), gpu:1, or several separated by commas.", rich_help_panel=_HOW)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with options (section train) and settings of a script.", rich_help_panel=_HOW)
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="Set an option or a setting: train.lr=3e-4. Repeatable.", rich_help_panel=_HOW),
    ] = [],  # noqa: B006  typer copies it
    profile: ProfilePath = None,
    profile_steps: ProfileSteps = 10,
    workers: Workers = 1,
    shard_optimizer: Annotated[
        bool,
        typer.Option("--shard-optimizer", help="Split the optimizer state among the workers.", rich_help_panel=_HOW),
    ] = False,
    sync_batch_norm: Annotated[
        bool,
        typer.Option(help="Compute batch-norm statistics over the rows of all workers.", rich_help_panel=_HOW),
    ] = True,
    plain: Plain = False,
    quiet: Quiet = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Train a model.

    To train the model that a script defines, in the run folder runs/model-1:

    [bold]oarlock train model.py --data table.csv:train --validate table.csv:test --columns label=kind --columns "x=*" --optimizer adam[/]

    The script defines [bold]cost[/] (the loss to minimize), [bold]show[/] (a dict of metrics to report) and [bold]predict[/] (the output
    that --save saves and `oarlock infer runs/model-1` computes).

    To run a script that trains by itself; further arguments go to the script:

    [bold]oarlock train examples/digits.py[/]

    To continue a training program saved by [bold]ol.save_model(result, path)[/], bit-identically and without its Python code:

    [bold]oarlock train run.safetensors --data digits:train --epochs 30[/]

    A TOML file can set options (section train) and settings that a script declares with [bold]ol.settings[/]:

    [bold]oarlock train model.py --config train.toml --set train.lr=3e-4 --set hidden=32[/]

    [bold]--workers 2[/] trains with two processes; [bold]torchrun ... -m oarlock -- train ...[/] trains on several machines.

    Ctrl-C saves the progress (to a checkpoint, if there is a run folder) and prints the command that continues; --save is written at the
    end. With [bold]--untrusted[/], nothing is printed until the run ends, and an interrupted run has two seconds to return its progress.
    """
    if not is_worker():  # the first worker checks for itself, and the others may not need the file
        require_program_file(path)
    if workers != 1 and untrusted:
        raise ArgumentError("--untrusted runs a single process without communication", hint="leave out --workers")
    configuration, progress = read_configuration(config, settings), progress_kind(plain=plain, quiet=quiet)
    start_workers(workers)
    configure_process(keep_memory=not is_child())  # an untrusted program must release unused memory
    given_options = {
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
    with Invocation(sys.argv, configuration, given_options, progress) as invocation, write_trace(profile, profile_steps):
        if is_script and untrusted:
            raise ArgumentError("--untrusted needs a saved program: a script is arbitrary Python code")
        if is_script and not invocation.has("data"):  # the script trains by itself, on every worker
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
    """Train the model that the first worker sends, without printing; or run the script, if the first worker does."""
    received = receive()
    if received is None:
        sys.exit(1)
    if received.model is None:
        run_script(path, arguments, invocation)
        return
    given = {f"train.{name}": Given(value, "the first worker") for name, value in received.options.items()}
    with Invocation(sys.argv, given, progress=invocation.progress) as received_invocation:
        try:
            with Stopping(patience=0.0):
                train_model(received.model, received_invocation.options())
        except Interrupted:
            sys.exit(130)


def _train_saved(path: Path, arguments: list[str], invocation: Invocation, sending: Sending, *, untrusted: bool) -> None:
    """Train a saved program, and save the result."""
    require_program_file(path)
    refuse_arguments(arguments)
    options = invocation.options()
    for name in ("batch_size", "optimizer", "lr"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"a saved program has its own {name}; use --{name.replace('_', '-')} only with a script's model")
    if untrusted:
        _require_confined(options, invocation)
    if options.save_every is not None and options.run is None:
        raise ArgumentError("--save-every needs a run folder", hint="--run runs/one")
    if options.data is None:
        raise ArgumentError("a saved program needs --data", hint="--data digits:train")
    require_folder_of(options.save)
    saved = options.save or path

    def save(result: TrainingResult) -> None:
        save_model(result, destination(saved), columns=model.columns)
        if invocation.progress != "quiet":
            typer.echo(f"{result.steps} steps in total; saved {saved}")

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
        exit_interrupted(interrupt.result, again if options.run is None else resume_command(options.run), saved)
    except NotFiniteError as error:
        save_model(error.result, destination(saved), columns=model.columns)
        if invocation.progress != "quiet":
            typer.echo(f"stopped after {error.result.steps} steps; saved {saved}")
        raise


def _require_confined(options: TrainOptions, invocation: Invocation) -> None:
    """Raise ArgumentError for options that the child process of an untrusted program cannot honor."""
    for name in ("run", "log"):
        if name in options.given:
            raise ArgumentError(f"--{name} cannot be used with --untrusted: the child process cannot write files or use the network")
    if options.save is not None and "save" not in invocation.given_options:
        raise ArgumentError("with --untrusted, the output path must be given by --save, not in the config file")

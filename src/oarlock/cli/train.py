"""`oarlock train`: run a training script, or continue a saved training program."""

import os
import runpy
import shlex
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from oarlock import training
from oarlock.cli.column_option import Columns
from oarlock.cli.output_file import destination, is_child
from oarlock.cli.untrusted_run import Untrusted
from oarlock.datasets.by_name import open_source
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.io.model import load_model, save_model
from oarlock.runtime.process import configure_process

__all__ = ["train"]


def train(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="SCRIPT.py | PROGRAM.safetensors", help="A training script, or a saved training program.")
    ],
    data: Annotated[
        str | None,
        typer.Option(help="What a saved program trains on: digits:train, another of `oarlock datasets`, a table, a folder of images."),
    ] = None,
    validate: Annotated[str | None, typer.Option(help="What it is measured on after each epoch: digits:test.")] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    epochs: Annotated[int | None, typer.Option(help="Train up to this many epochs in all; the program knows how many it had.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many further steps.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which split of a bundled data set; the program's own seed, unless given.")] = None,
    save: Annotated[Path | None, typer.Option(help="Where to save the training program; where it came from, unless given.")] = None,
    run: Annotated[Path | None, typer.Option(help="A folder to keep the run in: what it measures, and checkpoints to go on from.")] = None,
    save_every: Annotated[int | None, typer.Option(help="Steps between checkpoints; an epoch, unless given.")] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="inductor: PyTorch's compiler compiles regions of the plan; none: no longer. As saved, if not given."),
    ] = None,
    untrusted: Untrusted = False,
) -> None:
    """Train a model.

    [bold]oarlock train examples/digits.py[/] runs a script; what follows its name is the script's own.

    [bold]oarlock train run.safetensors --data digits:train --epochs 30[/] goes on with a training program that
    [bold]ol.save_model(result, path)[/] saved: the same bits as if it had never stopped, and none of its Python.

    Ctrl-C saves what was trained so far, and says how to go on. With [bold]--untrusted[/] nothing is shown until the run has ended,
    and a run that takes more than two seconds to hand back what it trained is ended without.
    """
    if not os.path.exists(path):
        raise MissingFileError(f'there is no file "{path}"')
    configure_process(keep_memory=not is_child())  # a stranger's file is held to the memory that it needs
    if path.suffix == ".py":
        given = {
            "--data": data,
            "--validate": validate,
            "--save": save,
            "--backend": backend,
            "--columns": columns or None,
            "--run": run,
            "--save-every": save_every,
            "--untrusted": untrusted or None,
        }
        for option, value in given.items():
            if value is not None:
                raise ArgumentError(f"{option} is for saved programs; a script loads and saves by itself")
        passed = [("--epochs", epochs), ("--steps", steps), ("--seed", seed)]
        _run_script(path, [text for option, value in passed if value is not None for text in (option, str(value))] + context.args)
        return
    if save_every is not None and run is None:
        raise ArgumentError("--save-every is for a run in a folder", hint="--run runs/one")
    kept = None if run is None else training.Run(run, save_every)
    if context.args:
        raise ArgumentError(f"unknown argument {context.args[0]!r}", hint="oarlock train --help")
    if data is None:
        raise ArgumentError("a saved program needs --data", hint="--data digits:train")
    if save is not None and not save.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{save.parent}"')
    try:
        with training.Stopping(patience=0.0):
            result = _go_on(path, data, validate, columns, epochs, steps, seed, kept, backend, untrusted)
    except training.Interrupted as interrupt:
        save_model(interrupt.result, destination(save or path))
        _stopped(interrupt.result, save or path, _how(data, columns) + " --untrusted" * untrusted)
    save_model(result, destination(save or path))
    typer.echo(f"{result.steps} steps in all; saved {save or path}")
    if run is not None:
        typer.echo(f"Next: oarlock runs {shlex.quote(str(run.parent))}; after a stop, oarlock resume {shlex.quote(str(run))}")


def _go_on(
    path: Path,
    data: str,
    validate: str | None,
    columns: list[str],
    epochs: int | None,
    steps: int | None,
    seed: int | None,
    run: training.Run | None,
    backend: str | None,
    untrusted: bool,
) -> training.TrainingResult:
    """Train a saved program."""
    model = load_model(path, untrusted=untrusted)
    split = model.program.seed if seed is None else seed
    held_out = None if validate is None else open_source(validate, seed=split, columns=columns)
    return training.train(
        model,
        open_source(data, seed=split, columns=columns),
        epochs=epochs,
        steps=steps,
        run=run,
        validate=held_out,
        tune=False,
        backend=backend,  # type: ignore[arg-type]
    )


def _how(data: str, columns: list[str]) -> str:
    """The options that say what a run trains on."""
    return " ".join([f"--data {shlex.quote(data)}", *(f"--columns {shlex.quote(text)}" for text in columns)])


def _stopped(result: training.TrainingResult, path: Path, how: str) -> NoReturn:
    """Say what an interrupted run left in `path`, and how to go on; end as who is interrupted does."""
    typer.echo(f"\ninterrupted after {result.steps} steps; saved {path}\nNext: oarlock train {shlex.quote(str(path))} {how}")
    raise typer.Exit(130)


def _run_script(path: Path, arguments: list[str]) -> None:
    """Run a script as `python SCRIPT.py ARGUMENTS` would."""
    before, folder = sys.argv, str(path.resolve().parent)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except training.Interrupted as interrupt:
        saved = Path(f"{path.stem}.interrupted.safetensors")
        save_model(interrupt.result, saved)
        _stopped(interrupt.result, saved, "--data DATA, where DATA is a .npz file of what the script trains on, or digits:train")
    finally:
        sys.argv = before
        sys.path.remove(folder)

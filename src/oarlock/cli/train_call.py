"""The parts of `oarlock train` common to scripts and saved programs: the call of `ol.train`, and the end of an interrupted run."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from oarlock.data.selection import columns_of
from oarlock.datasets.by_name import open_source
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.io.model import Model
from oarlock.runtime.place import CPUPlace, GPUPlace, Place
from oarlock.suggestions import find_near
from oarlock.training.invocation import OPTIONS, TrainOptions
from oarlock.training.records import TrainingResult
from oarlock.training.run_folder import Run
from oarlock.training.trainer import train

__all__ = ["exit_interrupted", "refuse_arguments", "require_folder_of", "require_program_file", "resume_command", "train_model"]


def train_model(model: Model, options: TrainOptions) -> None:
    """Train the model of a script, a saved program, or a model that the first worker sent."""
    seed = model.program.seed if options.seed is None else options.seed

    def opened(name: str | None) -> Any:
        return None if name is None else open_source(name, seed=seed, columns=options.columns, known=model.columns)

    data = opened(options.data)
    model.columns = {**model.columns, **columns_of(getattr(data, "rows", None))}
    train(
        model,
        data=data,
        batch_size=None if model.program.training is None else model.program.training.batch_size,
        validate=opened(options.validate),
        validate_every=options.validate_every,
        run=None if options.run is None else Run(options.run, options.save_every),
        loggers=options.log,
        epochs=options.epochs,
        steps=options.steps,
        backend=options.backend,  # type: ignore[arg-type]  train() refuses an unknown one
        place=_places_of(options.place),
        shard_optimizer=bool(options.shard_optimizer),
        sync_batch_norm=options.sync_batch_norm is not False,
        tune=False,
    )


def _places_of(text: str | None) -> list[Place] | None:
    """Return the devices that `--place` names. Raises ArgumentError."""
    return None if text is None else [_place_of(part.strip()) for part in text.split(",")]


def _place_of(text: str) -> Place:
    if text == "cpu":
        return CPUPlace()
    name, _, index = text.partition(":")
    if name != "gpu" or not (index or "0").isdecimal() or text.endswith(":"):
        raise ArgumentError(f"--place takes cpu, gpu or gpu:1 (the second GPU), or several separated by commas, not {text!r:.60}")
    return GPUPlace(int(index)) if index else GPUPlace.of_worker()


def refuse_arguments(words: Sequence[str]) -> None:
    """Raise ArgumentError for arguments that are neither options of the command nor passed to a script."""
    if words:
        options = [name.replace("_", "-") for name in (*OPTIONS, "config", "set", "import", "plain", "quiet")]
        near = find_near(words[0].strip("-").partition("=")[0], options) if words[0].startswith("-") else None
        raise ArgumentError(f"unknown argument {words[0]!r}", hint=f"did you mean --{near}?" if near else "oarlock train --help")


def require_program_file(path: Path) -> None:
    """Raise MissingFileError or ArgumentError if `path` is not a file."""
    if not os.path.exists(path):
        raise MissingFileError(f'there is no file "{path}"')
    if path.is_dir():
        raise ArgumentError(f'"{path}" is a folder, but train needs a script or a saved program', hint=f"oarlock resume {path}")


def require_folder_of(path: Path | None) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{path.parent}"')


def resume_command(run: Path) -> str:
    return f"oarlock resume {shlex.quote(str(run))}"


def exit_interrupted(result: TrainingResult, following: str, saved: Path | None = None) -> NoReturn:
    """Print the progress of an interrupted run and the command that continues it; exit with status 130."""
    typer.echo(f"\ninterrupted after {result.steps} steps" + (f"; saved {saved}" if saved is not None else "") + f"\nNext: {following}")
    raise typer.Exit(130)

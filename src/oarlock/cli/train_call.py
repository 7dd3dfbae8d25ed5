"""Common to scripts and saved programs that `oarlock train` trains: the arguments of `ol.train`, the end of a run that is interrupted."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from oarlock import training
from oarlock.datasets.by_name import open_source
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.runtime.place import CPUPlace, GPUPlace, Place
from oarlock.suggestions import find_near
from oarlock.training.options import OPTIONS, TrainOptions

__all__ = ["arguments_of", "refuse_arguments", "require_folder_of", "resumed", "stopped"]


def arguments_of(options: TrainOptions, seed: int) -> dict[str, Any]:
    """The arguments of `train` that a script's model and a saved program have in common."""
    seed = seed if options.seed is None else options.seed

    def opened(name: str | None) -> Any:
        return None if name is None else open_source(name, seed=seed, columns=options.columns)

    return {
        "data": opened(options.data),
        "validate": opened(options.validate),
        "validate_every": options.validate_every,
        "loggers": options.log,
        "epochs": options.epochs,
        "steps": options.steps,
        "backend": options.backend,
        "place": _place_of(options.place),
        "shard_optimizer": bool(options.shard_optimizer),
        "tune": False,
    }


def _place_of(text: str | None) -> Place | None:
    """The place that an option names. Raises ArgumentError."""
    if text is None or text == "cpu":
        return None if text is None else CPUPlace()
    name, _, index = text.partition(":")
    if name != "gpu" or not (index or "0").isdecimal() or text.endswith(":"):
        raise ArgumentError(f"--place is cpu, gpu, or gpu:1 for the second one, not {text!r:.60}")
    return GPUPlace(int(index)) if index else GPUPlace.of_worker()


def refuse_arguments(words: Sequence[str]) -> None:
    """Raise ArgumentError for what is no option of the command, where no script takes it as its own."""
    if words:
        options = [name.replace("_", "-") for name in (*OPTIONS, "config", "set", "import", "plain", "quiet")]
        near = find_near(words[0].strip("-").partition("=")[0], options) if words[0].startswith("-") else None
        raise ArgumentError(f"unknown argument {words[0]!r}", hint=f"did you mean --{near}?" if near else "oarlock train --help")


def require_folder_of(path: Path | None) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{path.parent}"')


def resumed(run: Path) -> str:
    return f"oarlock resume {shlex.quote(str(run))}"


def stopped(result: training.TrainingResult, following: str, saved: Path | None = None) -> NoReturn:
    """Say how far an interrupted run came, and how it goes on; end as who is interrupted does."""
    typer.echo(f"\ninterrupted after {result.steps} steps" + (f"; saved {saved}" if saved is not None else "") + f"\nNext: {following}")
    raise typer.Exit(130)

"""The option `--checkpoint`, which selects a checkpoint of a run. Imports no training code: predicting with a model file needs none."""

from pathlib import Path
from typing import Any

import typer

from oarlock.errors import ArgumentError

__all__ = ["checkpoint_option", "require_no_checkpoint"]


def checkpoint_option(unless_given: str) -> Any:
    """Return the option `--checkpoint` of a verb, with `unless_given` as its documented default."""
    text = f"For a run: use the best, the newest, or the checkpoint of a given step. Default: {unless_given}."
    return typer.Option("--checkpoint", metavar="best|newest|STEP", help=text)


def require_no_checkpoint(path: Path, checkpoint: str | None) -> None:
    """Raise ArgumentError if a checkpoint is given together with a model file."""
    if checkpoint is not None and not path.is_dir():
        raise ArgumentError(f'--checkpoint needs a run folder, but "{path}" is not a folder', hint="oarlock runs lists run folders")

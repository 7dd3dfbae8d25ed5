"""The option that picks a checkpoint of a run. What it picks is imported when a run is given: predicting by a file needs no training."""

from pathlib import Path
from typing import Any

import typer

from oarlock.errors import ArgumentError

__all__ = ["checkpoint_option", "require_no_checkpoint"]


def checkpoint_option(unless_given: str) -> Any:
    """The option of a verb, with the word that it takes unless another is given."""
    text = f"Of a run: the checkpoint of the best epoch, the newest, or that of a step; the {unless_given}, unless given."
    return typer.Option("--checkpoint", metavar="best|newest|STEP", help=text)


def require_no_checkpoint(path: Path, checkpoint: str | None) -> None:
    """Raise ArgumentError for a checkpoint that is asked of a model file."""
    if checkpoint is not None and not path.is_dir():
        raise ArgumentError(f'--checkpoint is for the folder of a run, and "{path}" is none', hint="oarlock runs lists them")

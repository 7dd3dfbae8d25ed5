"""`oarlock resume`: go on with a run that is kept in a folder."""

import contextlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.errors import FormatError, MissingFileError

__all__ = ["resume"]


def resume(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]) -> None:
    """Go on with a run where its last checkpoint is, by the command that began it, which its folder holds, to the end.

    It ends with the same bits as if it had never stopped. The command is run: resume only folders of your own.
    """
    about = folder / "run.json"
    if not about.is_file():
        raise MissingFileError(f'"{folder}" is no folder of a run: it has no run.json')
    try:
        found = json.loads(about.read_text(encoding="utf-8"))
        command, place = _whole([str(word) for word in found["command"]]), Path(found["working_folder"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f'"{about}" does not say how the run was begun') from error
    if not command:
        raise FormatError(f'"{about}" does not say how the run was begun')
    typer.echo(f"in {place}: {' '.join(command)}")
    if not place.is_dir():
        raise MissingFileError(f'there is no folder "{place}", in which the run was begun')
    with contextlib.chdir(place):
        if command[0].endswith(".py") and os.path.basename(command[0]) != "__main__.py":
            sys.argv = command
            sys.path.insert(0, str(Path(command[0]).resolve().parent))
            runpy.run_path(command[0], run_name="__main__")
        else:
            from oarlock.cli.main import app

            sys.argv = command
            app(args=command[1:], standalone_mode=False)


def _whole(command: list[str]) -> list[str]:
    """A command of ours without the option that stops it early; that of a script is its own."""
    if not command or command[0].endswith(".py"):
        return command
    kept: list[str] = []
    for word, before in zip(command, ["", *command], strict=False):
        if word != "--steps" and before != "--steps" and not word.startswith("--steps="):
            kept.append(word)
    return kept

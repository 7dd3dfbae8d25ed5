"""`oarlock resume`: go on with a run that is kept in a folder."""

import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.progress_options import Plain, Quiet, shown
from oarlock.cli.script_run import run_script
from oarlock.errors import ArgumentError, FormatError, MissingFileError, OarlockError
from oarlock.io.files import read_file
from oarlock.training.configuration import read_configuration
from oarlock.training.invocation import Invocation
from oarlock.training.run_record import RunRecord

__all__ = ["resume"]

_LARGEST = 2**20  # bytes of run.json
_SAID_ANEW = ("--steps", "--config", "--set", "--run")  # the folder of the run says what they said, and a run goes on to its end


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    epochs: Annotated[int | None, typer.Option(help="Train up to this many epochs in all; as many as before, unless given.")] = None,
    plain: Plain = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run where its last checkpoint is, by the command that began it and the settings that its folder holds, to the end.

    It ends with the same bits as if it had never stopped. The command is run: resume only folders of your own.
    """
    about, settings = folder / "run.json", folder / "config.toml"
    if not about.is_file():
        RunRecord.read(folder)  # which says what is there instead
    try:
        found = json.loads(read_file(about, largest=_LARGEST, limit="file_bytes"))
        command, place = [str(word) for word in found["command"]], Path(found["working_folder"])
    except OarlockError:  # a ValueError too
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f'"{about}" does not say how the run was begun') from error
    if not command:
        raise FormatError(f'"{about}" does not say how the run was begun')
    progress, settings, resolved = shown(plain=plain, quiet=quiet), settings.resolve(), folder.resolve()
    is_script = command[0].endswith(".py") and os.path.basename(command[0]) != "__main__.py"
    if is_script and epochs is not None:
        raise ArgumentError("--epochs is for a run that `oarlock train` began; a script says by itself how many there are")
    if epochs is not None:
        _require_more(folder, epochs)
    words = command if is_script else [command[0], *_again(command[1:], os.path.relpath(resolved, place), settings.is_file(), epochs)]
    if not quiet:
        shown_words = shlex.join(words if is_script else ["oarlock", *words[1:]])
        typer.echo(shown_words if place == Path.cwd() else f"in {place}: {shown_words}")
    if not place.is_dir():
        raise MissingFileError(f'there is no folder "{place}", in which the run was begun')
    with contextlib.chdir(place):
        if is_script:
            given = read_configuration(settings) if settings.is_file() else {}
            with Invocation(given=given, progress=progress) as invocation:
                run_script(Path(command[0]), command[1:], invocation)
        else:
            from oarlock.cli.main import app

            sys.argv = words
            app(args=words[1:] + ["--plain"] * plain + ["--quiet"] * quiet, standalone_mode=False)


def _require_more(folder: Path, epochs: int) -> None:
    """Raise ArgumentError where the run has more epochs than it is to have: nothing would be trained, and its record would change."""
    done = max((record.epoch for record in RunRecord.read(folder).history), default=0)
    if epochs < done:
        raise ArgumentError(
            f'"{folder}" has {done} epochs already, and --epochs is the number of all',
            hint=f"--epochs {done + epochs} trains {epochs} more",
        )


def _again(words: list[str], folder: str, has_settings: bool, epochs: int | None) -> list[str]:
    """The words of a command of ours as it goes on with the run in `folder`."""
    options = (*_SAID_ANEW, "--epochs") if epochs is not None else _SAID_ANEW
    kept, is_value = [], False
    for word in words:
        if is_value:
            is_value = False
        elif word in options:
            is_value = True
        elif not word.startswith(tuple(f"{option}=" for option in options)) and word not in ("--plain", "--quiet", "-q"):
            kept.append(word)
    new = ["--run", folder, *(["--config", os.path.join(folder, "config.toml")] if has_settings else [])]
    return [*kept, *new, *(["--epochs", str(epochs)] if epochs is not None else [])]

"""`oarlock resume`: resume a run from its folder."""

import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Plain, Quiet, progress_kind
from oarlock.cli.script_run import run_script
from oarlock.errors import ArgumentError, FormatError, MissingFileError, OarlockError
from oarlock.io.files import read_file
from oarlock.training.configuration import read_configuration
from oarlock.training.invocation import Invocation
from oarlock.training.run_record import RunRecord

__all__ = ["resume"]

_LARGEST = 2**20  # bytes of run.json
_REPLACED = ("--steps", "--config", "--set", "--run")  # the run folder has their settings, and a resumed run trains to its end


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    epochs: Annotated[int | None, typer.Option(help="Total number of epochs to train. Default: as before.")] = None,
    plain: Plain = False,
    quiet: Quiet = False,
) -> None:
    """Resume a run from its last checkpoint, using the original command and the settings in its folder.

    The result is bit-identical to that of an uninterrupted run. The original command is executed, so resume only folders that you trust.
    """
    about, settings = folder / "run.json", folder / "config.toml"
    if not about.is_file():
        RunRecord.read(folder)  # raises an error that describes the folder
    try:
        found = json.loads(read_file(about, largest=_LARGEST, limit="file_bytes"))
        command, place = [str(word) for word in found["command"]], Path(found["working_folder"])
    except OarlockError:  # also a ValueError
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f'"{about}" has no valid record of the command that started the run') from error
    if not command:
        raise FormatError(f'"{about}" has no valid record of the command that started the run')
    progress, settings, resolved = progress_kind(plain=plain, quiet=quiet), settings.resolve(), folder.resolve()
    is_script = command[0].endswith(".py") and os.path.basename(command[0]) != "__main__.py"
    if is_script and epochs is not None:
        raise ArgumentError("--epochs needs a run that `oarlock train` started; a script sets its own number of epochs")
    if epochs is not None:
        _require_more(folder, epochs)
    words = command if is_script else [command[0], *_again(command[1:], os.path.relpath(resolved, place), settings.is_file(), epochs)]
    if not quiet:
        shown_words = shlex.join(words if is_script else ["oarlock", *words[1:]])
        typer.echo(shown_words if place == Path.cwd() else f"in {place}: {shown_words}")
    if not place.is_dir():
        raise MissingFileError(f'the working folder of the run, "{place}", does not exist')
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
    """Raise ArgumentError if the run already has more than `epochs` epochs: nothing would be trained, but its record would change."""
    done = max((record.epoch for record in RunRecord.read(folder).history), default=0)
    if epochs < done:
        raise ArgumentError(
            f'"{folder}" already has {done} epochs, and --epochs is the total',
            hint=f"--epochs {done + epochs} trains {epochs} more",
        )


def _again(words: list[str], folder: str, has_settings: bool, epochs: int | None) -> list[str]:
    """Return the words of an `oarlock` command that resumes the run in `folder`."""
    options = (*_REPLACED, "--epochs") if epochs is not None else _REPLACED
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

"""The options that several verbs have in common. Imports no training code: predicting with a model file needs none."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from oarlock.errors import ArgumentError, MissingFileError

__all__ = [
    "Columns",
    "Imports",
    "Plain",
    "Quiet",
    "checkpoint_option",
    "import_operators",
    "parse_sizes",
    "progress_kind",
    "require_no_checkpoint",
]


def checkpoint_option(unless_given: str) -> Any:
    """Return the option `--checkpoint` of a verb, with `unless_given` as its documented default."""
    text = f"For a run: use the best, the newest, or the checkpoint of a given step. Default: {unless_given}."
    return typer.Option("--checkpoint", metavar="best|newest|STEP", help=text)


def require_no_checkpoint(path: Path, checkpoint: str | None) -> None:
    """Raise ArgumentError if a checkpoint is given together with a model file."""
    if checkpoint is not None and not path.is_dir():
        raise ArgumentError(f'--checkpoint needs a run folder, but "{path}" is not a folder', hint="oarlock runs lists run folders")


Columns = Annotated[
    list[str],
    typer.Option(
        "--columns",
        help='Columns of a table to use for an input: "x=width,height", "x=first:last", "label=kind"; "x=*" takes all others. Repeatable.',
    ),
]


Plain = Annotated[bool, typer.Option("--plain", help="Print one line per epoch, as when the output is not a terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]


def progress_kind(*, plain: bool, quiet: bool) -> Literal["plain", "quiet"] | None:
    """Return the selected display. Raises ArgumentError if both options are given."""
    if plain and quiet:
        raise ArgumentError("--plain and --quiet exclude each other: give one of them")
    return "plain" if plain else "quiet" if quiet else None


Imports = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="FILE.py", help="Python file that declares custom operators of the program. Repeatable."),
]


def import_operators(name: str) -> None:
    """Import `name`, a Python file or a module found in the working folder or among the installed packages, to register its operators.

    Raises MissingFileError for a missing file, ArgumentError for a missing module, and any error of the imported code.
    """
    if name.endswith(".py"):
        _import_file(Path(name))
        return
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):  # a module that `name` imports
            raise
        raise ArgumentError(f'--import: there is no module "{name}"', hint="--import my_operators.py takes a file") from None
    finally:
        sys.path[:] = before


def _import_file(path: Path) -> None:
    """Import a file as the module named after it, unless it has been imported already."""
    if not path.is_file():
        raise MissingFileError(f'there is no file "{path}"')
    found = sys.modules.get(path.stem)
    if found is not None and getattr(found, "__file__", None) == str(path.resolve()):
        return
    if found is not None:
        raise ArgumentError(f'--import: "{path}" has the name of an imported module, "{path.stem}"', hint="rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # for imports from the same folder
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    finally:
        sys.path.remove(str(path.resolve().parent))


def parse_sizes(texts: Sequence[str] | None) -> dict[str, int]:
    """Parse the values of an option `--size NAME=NUMBER`. Raises BadParameter."""
    return dict(map(_parse_size, texts or ()))


def _parse_size(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise typer.BadParameter(f"expected NAME=NUMBER, not {text!r:.60}", param_hint="--size")
    return name, int(number)

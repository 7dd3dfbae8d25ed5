"""The option `--import`, which registers custom operators before a verb opens a program that uses them."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from oarlock.errors import ArgumentError, MissingFileError

__all__ = ["Imports", "import_operators"]

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

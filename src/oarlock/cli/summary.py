"""`oarlock summary`: list the layers of a program and their cost."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.layer.program_summary import summary as summarize

__all__ = ["summary"]


def summary(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program, program text or run folder.")],
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Group layers by this many parts of their names: encoder.0.attention has three. Default: all parts."),
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="Value for a symbolic size, for example n=32. Repeatable.")
    ] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the layers of a program: output types, parameters and multiply-adds."""
    sizes = None if not size else dict(_size(text) for text in size)
    typer.echo(str(summarize(read_program_file(path, untrusted=untrusted), depth=depth, sizes=sizes)))


def _size(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise typer.BadParameter(f"expected NAME=NUMBER, not {text!r:.60}", param_hint="--size")
    return name, int(number)

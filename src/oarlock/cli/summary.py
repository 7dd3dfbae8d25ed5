"""`oarlock summary`: the layers of a program, and what they take."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.layer.program_summary import summary as summarize

__all__ = ["summary"]


def summary(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A model file, a program's bytes or text, or the folder of a run.")],
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="How many parts of a name, such as the three of encoder.0.attention, make a layer; all, unless given."),
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="How large a size is, such as n=32; may be given more than once.")
    ] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the layers of a program: what they give, their parameters, and the multiply-adds they take."""
    sizes = None if not size else dict(_size(text) for text in size)
    typer.echo(str(summarize(read_program_file(path, untrusted=untrusted), depth=depth, sizes=sizes)))


def _size(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise typer.BadParameter(f"{text!r:.60} is no size; NAME=NUMBER is", param_hint="--size")
    return name, int(number)

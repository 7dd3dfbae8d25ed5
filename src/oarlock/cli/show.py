"""`oarlock show`: print the program in a file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.printer import format_program

__all__ = ["show"]


def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A model file, or the bytes of a program.")],
    source: Annotated[bool, typer.Option(help="Show the author's lines above what they made.")] = True,
    untrusted: Untrusted = False,
) -> None:
    """Print a program: its nested blocks, with types, parameters and the lines of its author."""
    text = format_program(read_program_file(path, untrusted=untrusted), source=source)
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        typer.echo(text, nl=False)

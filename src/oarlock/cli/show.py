"""`oarlock show`: print the program in a file, or draw it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import write
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.drawing import draw
from oarlock.errors import ArgumentError
from oarlock.ir.printer import format_program

__all__ = ["show"]


def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A model file, the bytes of a program, or the folder of a run.")],
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OUT]", help="Where a drawing is written, .html or .svg; with --html or --svg, and without this, it is printed."
        ),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Draw the program as a picture.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Draw the program as a page that folds, one file that needs no other.")] = False,
    depth: Annotated[int | None, typer.Option(min=0, help="How many layers and blocks in one another a drawing has open at first.")] = None,
    source: Annotated[bool, typer.Option(help="Show the author's lines above what they made; in a drawing, of what is pointed at.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print a program: its nested blocks, with types, parameters and the lines of its author.

    Or draw it: `oarlock show model.safetensors model.html`, or `model.svg`.
    """
    if svg and html:
        raise ArgumentError("show: --svg and --html are two drawings; ask for one at a time")
    if not (svg or html) and out is not None:
        svg, html = out.suffix == ".svg", out.suffix in (".html", ".htm")
    if not (svg or html) and (out is not None or depth is not None):
        given = "--depth" if out is None else f'"{out}"'
        raise ArgumentError(f"show: {given} is for a drawing", hint="--svg draws a picture, --html a page")
    program = read_program_file(path, untrusted=untrusted)
    if svg or html:
        drawing = draw(program, depth=depth, source=source)
        text = drawing.svg if svg else drawing.page
        if out is None:
            typer.echo(text, nl=False)
        else:
            write(out, text.encode())
            typer.echo(f"saved {out}")
        return
    text = format_program(program, source=source)
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        typer.echo(text, nl=False)

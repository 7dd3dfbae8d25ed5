"""`oarlock show`: print or draw a program."""

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
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or run folder.")],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="[OUT]", help="Path of the drawing, .html or .svg. Without it, --html and --svg print the drawing."),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Draw the program as an SVG image.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Draw the program as a self-contained HTML page with collapsible blocks.")] = False,
    depth: Annotated[int | None, typer.Option(min=0, help="Nesting depth of layers and blocks that a drawing opens at first.")] = None,
    source: Annotated[bool, typer.Option(help="Show source lines above the ops that they created; in a drawing, on hover.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print a program: its nested blocks, with types, parameters and source lines.

    Or draw it: `oarlock show model.safetensors model.html`, or `model.svg`.
    """
    if svg and html:
        raise ArgumentError("show: --svg and --html exclude each other: give one of them")
    if not (svg or html) and out is not None:
        svg, html = out.suffix == ".svg", out.suffix in (".html", ".htm")
    if not (svg or html) and (out is not None or depth is not None):
        given = "--depth" if out is None else f'"{out}"'
        raise ArgumentError(f"show: {given} needs a drawing", hint="--svg draws a picture, --html a page")
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

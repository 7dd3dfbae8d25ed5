"""The option `--columns`, which selects columns of a table."""

from typing import Annotated

import typer

__all__ = ["Columns"]

Columns = Annotated[
    list[str],
    typer.Option(
        "--columns",
        help='Columns of a table to use for an input: "x=width,height", "x=first:last", "label=kind"; "x=*" takes all others. Repeatable.',
    ),
]

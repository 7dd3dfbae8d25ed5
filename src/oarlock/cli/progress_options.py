"""The options that say how progress is shown."""

from typing import Annotated, Literal

import typer

from oarlock.errors import ArgumentError

__all__ = ["Plain", "Quiet", "shown"]

Plain = Annotated[bool, typer.Option("--plain", help="A line for each epoch, as where the output is no terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what goes wrong.")]


def shown(*, plain: bool, quiet: bool) -> Literal["plain", "quiet"] | None:
    """The kind of display that was asked for. Raises ArgumentError for both."""
    if plain and quiet:
        raise ArgumentError("--plain shows a line for each epoch, and --quiet none: give one of them")
    return "plain" if plain else "quiet" if quiet else None

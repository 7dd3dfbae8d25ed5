"""The options `--plain` and `--quiet`, which select the progress display."""

from typing import Annotated, Literal

import typer

from oarlock.errors import ArgumentError

__all__ = ["Plain", "Quiet", "shown"]

Plain = Annotated[bool, typer.Option("--plain", help="Print one line per epoch, as when the output is not a terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]


def shown(*, plain: bool, quiet: bool) -> Literal["plain", "quiet"] | None:
    """Return the selected display. Raises ArgumentError if both options are given."""
    if plain and quiet:
        raise ArgumentError("--plain and --quiet exclude each other: give one of them")
    return "plain" if plain else "quiet" if quiet else None

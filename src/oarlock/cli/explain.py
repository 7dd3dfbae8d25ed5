"""`oarlock explain`: what an error means, and what to do."""

import inspect
from typing import Annotated

import typer

from oarlock import errors
from oarlock.errors import ArgumentError

__all__ = ["explain"]


def explain(name: Annotated[str | None, typer.Argument(help="An error, such as ShapeError.")] = None) -> None:
    """Say what one of our errors means, with its cause and the repair; or draw the tree of them."""
    if name is None:
        typer.echo(inspect.getdoc(errors))
        return
    if name not in errors.__all__:
        raise ArgumentError(f'no error is called "{name}"', contract=", ".join(errors.__all__))
    typer.echo(f"{name}\n\n{inspect.getdoc(getattr(errors, name))}")

"""`oarlock explain`: explain an error class."""

import inspect
from typing import Annotated

import typer

from oarlock import errors
from oarlock.errors import ArgumentError

__all__ = ["explain"]


def explain(name: Annotated[str | None, typer.Argument(help="Error class, such as ShapeError.")] = None) -> None:
    """Explain an Oarlock error, with its cause and its fix, or list all of them."""
    if name is None:
        typer.echo(inspect.getdoc(errors))
        return
    if name not in errors.__all__:
        raise ArgumentError(f'there is no error class "{name}"', contract=", ".join(errors.__all__))
    typer.echo(f"{name}\n\n{inspect.getdoc(getattr(errors, name))}")

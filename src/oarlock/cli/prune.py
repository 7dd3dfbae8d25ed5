"""`oarlock prune`: keep the part of a model that some variables need."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.io.model import load_model, save_model

__all__ = ["prune"]


def prune(
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="A model file.")],
    targets: Annotated[list[str], typer.Argument(help="What to keep: targets or variables of the main block, by name.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save what is left.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save the part of a model that some variables need: `oarlock prune run.safetensors predict -o predict.safetensors`."""
    model = load_model(path, untrusted=untrusted)
    save_model({name: model.program.get_target(name) for name in targets}, model, destination(output), columns=model.columns)
    typer.echo(f"saved {output}")

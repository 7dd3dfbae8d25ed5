"""`oarlock recompute`: make the gradients of a training program recompute values instead of storing them."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  registers the operators of training programs
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.io.model import load_model, save_model
from oarlock.passes.recomputation.recompute import recompute as apply

__all__ = ["recompute"]


def recompute(
    path: Annotated[Path, typer.Argument(metavar="RUN.safetensors", help="Training program with its values, as saved by `oarlock train`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Path of the training program to write.")],
    checkpoint: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Variable that ends a segment. Repeatable.")] = None,
    segments: Annotated[int | None, typer.Option(min=1, help="Number of segments, if no --checkpoint is given.")] = None,
    loops: Annotated[bool, typer.Option(help="Recompute the values of loop iterations.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save a training program that needs less memory but more time: `oarlock recompute run.safetensors -o smaller.safetensors`."""
    model = load_model(path, untrusted=untrusted)
    count = apply(model.program, checkpoint or (), segments=segments, loops=loops)
    save_model(model, destination(output))
    typer.echo(f"saved {output}: gradients recompute {count} op{'' if count == 1 else 's'}")

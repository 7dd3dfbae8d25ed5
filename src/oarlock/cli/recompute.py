"""`oarlock recompute`: let the gradients of a training program compute values again rather than keep them."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  training programs use its operators
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.io.model import load_model, save_model
from oarlock.passes.recomputation.recompute import recompute as apply

__all__ = ["recompute"]


def recompute(
    path: Annotated[
        Path, typer.Argument(metavar="RUN.safetensors", help="A training program with its values, as `oarlock train` saves it.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save what needs less memory.")],
    checkpoint: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A variable with which a segment ends; may be given more than once.")
    ] = None,
    segments: Annotated[int | None, typer.Option(min=1, help="How many segments there are, where no checkpoints are given.")] = None,
    loops: Annotated[bool, typer.Option(help="Compute again what the steps of loops compute.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save a training program that needs less memory and more time: `oarlock recompute run.safetensors -o smaller.safetensors`."""
    model = load_model(path, untrusted=untrusted)
    count = apply(model.program, checkpoint or (), segments=segments, loops=loops)
    save_model(model, destination(output))
    typer.echo(f"saved {output}: gradients compute {count} op{'' if count == 1 else 's'} again")

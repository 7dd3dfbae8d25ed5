"""`oarlock import torch`: an exported program of PyTorch as a model file of ours."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  every operator that a program may use
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.interop.torch.archive import read_archive
from oarlock.interop.torch.comparison import compare_with_torch, draws_numbers
from oarlock.interop.torch.imported import from_exported
from oarlock.io.model import save_model

__all__ = ["import_torch"]


def import_torch(
    path: Annotated[Path, typer.Argument(metavar="FILE.pt2", help="What torch.export.save wrote.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to save the model.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Run it beside PyTorch, and print how far apart they are.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Bring in an exported program: `oarlock import torch model.pt2 -o model.safetensors`. Prints what became of each operator."""
    model = from_exported(read_archive(path, untrusted=untrusted), trusted=False)
    typer.echo(str(model.report))
    if output is not None:
        save_model(model, destination(output))
        ops = sum(len(block.ops) for block in model.program.blocks)
        typer.echo(f"saved {output}: {ops} ops, {len(model.program.parameters())} parameters")
    if check and draws_numbers(model):
        typer.echo("it draws random numbers, so there is nothing to compare")
    elif check:
        for difference in compare_with_torch(model):
            apart = "of another type" if difference.largest is None else f"{difference.largest:.3g} apart, of {difference.magnitude:.3g}"
            typer.echo(f"{difference.output}: {apart}")

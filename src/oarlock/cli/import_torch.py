"""`oarlock import torch`: convert an exported PyTorch program to a model file."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  registers the operators of training programs
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.interop.torch.archive import read_archive
from oarlock.interop.torch.comparison import compare_with_torch, draws_numbers
from oarlock.interop.torch.imported import from_exported
from oarlock.io.model import save_model

__all__ = ["import_torch"]


def import_torch(
    path: Annotated[Path, typer.Argument(metavar="FILE.pt2", help="File written by torch.export.save.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Path of the model file to write.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the outputs with those of PyTorch.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Import an exported PyTorch program: `oarlock import torch model.pt2 -o model.safetensors`. Prints how each op was translated."""
    model = from_exported(read_archive(path, untrusted=untrusted), trusted=False)
    typer.echo(str(model.report))
    if output is not None:
        save_model(model, destination(output))
        ops = sum(len(block.ops) for block in model.program.blocks)
        typer.echo(f"saved {output}: {ops} ops, {len(model.program.parameters())} parameters")
    if check and draws_numbers(model):
        typer.echo("not compared: the program draws random numbers")
    elif check:
        for difference in compare_with_torch(model):
            largest, magnitude = difference.largest, difference.magnitude
            result = "the types differ" if largest is None else f"difference {largest:.3g} of {magnitude:.3g}"
            typer.echo(f"{difference.output}: {result}")

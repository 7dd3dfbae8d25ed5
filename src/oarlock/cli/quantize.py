"""`oarlock quantize`: keep the weights of a model as integers of 8 bits."""

from pathlib import Path
from typing import Annotated, cast

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.io.model import load_model, save_model
from oarlock.io.quantization import quantize as quantized
from oarlock.passes.precision.quantization import Mode

__all__ = ["quantize"]


def quantize(
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="A model that predicts.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the smaller one.")],
    mode: Annotated[str, typer.Option(help="dynamic: products of integers; weights: products of floats.")] = "dynamic",
    at_least: Annotated[int, typer.Option(min=0, help="Weights of fewer elements stay floats.")] = 4096,
    products_at_least: Annotated[int, typer.Option(min=0, help="Products with weights of fewer elements are those of floats.")] = 2**17,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save a model with its weights as int8, a quarter of the size: `oarlock quantize model.safetensors -o small.safetensors`."""
    model = load_model(path, untrusted=untrusted)
    try:
        smaller = quantized(model, cast(Mode, mode), at_least=at_least, products_at_least=products_at_least)
    except ArgumentError as error:
        raise typer.BadParameter(error.message, param_hint="--mode") from error
    save_model(smaller, destination(output))
    count = len(smaller.program.parameters()) - len(model.program.parameters())
    typer.echo(f"saved {output}: {count} weight{'' if count == 1 else 's'} as int8")

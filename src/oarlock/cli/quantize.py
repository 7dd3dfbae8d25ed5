"""`oarlock quantize`: store the weights of a model as 8-bit integers."""

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
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="Model file for inference.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Path of the model file to write.")],
    mode: Annotated[str, typer.Option(help="dynamic: multiply in integers; weights: multiply in floats.")] = "dynamic",
    at_least: Annotated[int, typer.Option(min=0, help="Smallest weight to quantize, in elements.")] = 4096,
    products_at_least: Annotated[int, typer.Option(min=0, help="Smallest weight to multiply in integers, in elements.")] = 2**17,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save a model with int8 weights, a quarter of the size: `oarlock quantize model.safetensors -o small.safetensors`."""
    model = load_model(path, untrusted=untrusted)
    try:
        smaller = quantized(model, cast(Mode, mode), at_least=at_least, products_at_least=products_at_least)
    except ArgumentError as error:
        raise typer.BadParameter(error.message, param_hint="--mode") from error
    save_model(smaller, destination(output))
    count = len(smaller.program.parameters()) - len(model.program.parameters())
    typer.echo(f"saved {output}: {count} weight{'' if count == 1 else 's'} as int8")

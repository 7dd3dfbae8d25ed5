"""`oarlock import onnx`: an ONNX model as a model file of ours."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  every operator that a program may use
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.interop.onnx.comparison import compare_with_onnxruntime
from oarlock.interop.onnx.importing import from_onnx
from oarlock.io.model import save_model

__all__ = ["import_onnx"]


def import_onnx(
    path: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="An ONNX model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")],
    trainable: Annotated[bool, typer.Option("--trainable", help="Initializers of floats are to be trained.")] = False,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=NUMBER", help="A number for a symbolic size; may be repeated.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Run it beside ONNX Runtime, and print how far apart they are.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Bring in an ONNX model: `oarlock import onnx model.onnx -o model.safetensors`."""
    model = from_onnx(path, trainable=trainable, sizes=dict(map(_named_size, size or [])), untrusted=untrusted)
    save_model(model, destination(output))
    ops = sum(len(block.ops) for block in model.program.blocks)
    typer.echo(f"saved {output}: {ops} ops, {len(model.program.parameters())} parameters")
    for difference in compare_with_onnxruntime(path, model) if check else ():
        apart = f"{difference.largest:.3g} apart, of {difference.magnitude:.3g}" if difference.fits else "of another type"
        typer.echo(f"{difference.output}: {apart}")


def _named_size(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise ArgumentError(f"--size is a name and a number, not {text!r:.80}", hint="--size batch=8")
    return name, int(number)

"""`oarlock import onnx`: convert an ONNX model to a model file."""

from pathlib import Path
from typing import Annotated

import typer

import oarlock.op.update  # noqa: F401  registers the operators of training programs
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.interop.onnx.importing import from_onnx
from oarlock.interop.onnx.runtime import compare_with_onnxruntime
from oarlock.io.model import save_model

__all__ = ["import_onnx"]


def import_onnx(
    path: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="ONNX model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Path of the model file to write.")],
    trainable: Annotated[bool, typer.Option("--trainable", help="Make floating-point initializers trainable.")] = False,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=NUMBER", help="Value for a symbolic size. Repeatable.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the outputs with those of ONNX Runtime.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Import an ONNX model: `oarlock import onnx model.onnx -o model.safetensors`."""
    model = from_onnx(path, trainable=trainable, sizes=dict(map(_named_size, size or [])), untrusted=untrusted)
    save_model(model, destination(output))
    ops = sum(len(block.ops) for block in model.program.blocks)
    typer.echo(f"saved {output}: {ops} ops, {len(model.program.parameters())} parameters")
    for difference in compare_with_onnxruntime(path, model) if check else ():
        result = f"difference {difference.largest:.3g} of {difference.magnitude:.3g}" if difference.fits else "the types differ"
        typer.echo(f"{difference.output}: {result}")


def _named_size(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise ArgumentError(f"--size takes NAME=NUMBER, not {text!r:.80}", hint="--size batch=8")
    return name, int(number)

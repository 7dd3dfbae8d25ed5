"""`oarlock export`: a model file as a file of another format."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.interop.onnx.export import to_onnx
from oarlock.io.model import load_model

__all__ = ["export"]


def export(
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="A model file.")],
    onnx: Annotated[Path, typer.Option("--onnx", help="Where to write the ONNX file.")],
    training: Annotated[
        bool, typer.Option("--training", help="The whole training step: forward, backward, update, state in and out.")
    ] = False,
    opset: Annotated[int, typer.Option(help="The version of ONNX's operators, 17 to 23.")] = 18,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Write a model as ONNX: `oarlock export predict.safetensors --onnx predict.onnx`."""
    exported = to_onnx(load_model(path, untrusted=untrusted), destination(onnx), opset=opset, training=training)
    typer.echo(f"saved {onnx}")
    typer.echo(f"takes {', '.join(name for name in exported.inputs if name not in exported.state)}")
    gives = set(exported.state.values())
    typer.echo(f"gives {', '.join(name for name in exported.outputs if name not in gives)}")
    for name, following in exported.state.items():
        typer.echo(f"state {name} -> {following}")

"""`oarlock export`: convert a model file to another format."""

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
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="Model file.")],
    onnx: Annotated[Path, typer.Option("--onnx", help="Path of the ONNX file to write.")],
    training: Annotated[
        bool, typer.Option("--training", help="Export the whole training step: forward, backward, update, state in and out.")
    ] = False,
    opset: Annotated[int, typer.Option(help="ONNX operator set version, 17 to 23.")] = 18,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Export a model to ONNX: `oarlock export predict.safetensors --onnx predict.onnx`."""
    exported = to_onnx(load_model(path, untrusted=untrusted), destination(onnx), opset=opset, training=training)
    typer.echo(f"saved {onnx}")
    typer.echo(f"inputs {', '.join(name for name in exported.inputs if name not in exported.state)}")
    next_states = set(exported.state.values())
    typer.echo(f"outputs {', '.join(name for name in exported.outputs if name not in next_states)}")
    for name, following in exported.state.items():
        typer.echo(f"state {name} -> {following}")

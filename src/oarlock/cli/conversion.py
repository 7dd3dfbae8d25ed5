"""The verbs that write one model file from another: `export`, `import`, `prune`, `quantize` and `recompute`."""

from pathlib import Path
from typing import Annotated, cast

import typer

import oarlock.op.update  # noqa: F401  registers the operators of training programs
from oarlock.cli.options import Imports, checkpoint_option, parse_sizes, require_no_checkpoint
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.interop.onnx.export import to_onnx
from oarlock.interop.onnx.importing import from_onnx
from oarlock.interop.onnx.runtime import compare_with_onnxruntime
from oarlock.interop.torch.archive import read_archive
from oarlock.interop.torch.comparison import compare_with_torch, draws_numbers
from oarlock.interop.torch.imported import from_exported
from oarlock.io.model import load_model, save_model
from oarlock.io.quantization import quantize as quantized
from oarlock.passes.precision.quantization import Mode
from oarlock.passes.recomputation.recompute import recompute as apply

__all__ = ["export", "import_onnx", "import_torch", "prune", "quantize", "recompute"]


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
    model = from_onnx(path, trainable=trainable, sizes=parse_sizes(size), untrusted=untrusted)
    save_model(model, destination(output))
    ops = sum(len(block.ops) for block in model.program.blocks)
    typer.echo(f"saved {output}: {ops} ops, {len(model.program.parameters())} parameters")
    for difference in compare_with_onnxruntime(path, model) if check else ():
        result = f"difference {difference.largest:.3g} of {difference.magnitude:.3g}" if difference.fits else "the types differ"
        typer.echo(f"{difference.output}: {result}")


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


def prune(
    path: Annotated[Path, typer.Argument(metavar="RUN | MODEL.safetensors", help="Run folder or model file.")],
    targets: Annotated[
        list[str], typer.Argument(help="Targets or main-block variables to keep, by name. Default for a run: its prediction.")
    ] = [],  # noqa: B006  typer copies it
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Path of the model file to write.")],
    checkpoint: Annotated[str | None, checkpoint_option("best")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save the part of a model that computes given variables: `oarlock prune run.safetensors predict -o predict.safetensors`.

    For a run, the prediction is saved: [bold]oarlock prune runs/one -o model.safetensors[/] saves the best epoch as `oarlock train --save`
    saves the last one.
    """
    require_no_checkpoint(path, checkpoint)
    if path.is_dir():
        from oarlock.cli.run_checkpoint import choose_checkpoint, prediction_model

        model, description = choose_checkpoint(path, checkpoint or "best", untrusted=untrusted)
        model, description = model if targets else prediction_model(model, path), f": {description}"
    else:
        model, description = load_model(path, untrusted=untrusted), ""
    if not targets and not description:
        raise ArgumentError(
            f'no variable of the model file "{path}" is given',
            given=[f"it computes {', '.join(model.program.targets)}"],
            hint=f"oarlock prune {path} {next(iter(model.program.targets), 'NAME')} --output {output}",
        )
    kept = {name: model.program.get_target(name) for name in targets} or model.program
    save_model(kept, model, destination(output), columns=model.columns)
    typer.echo(f"saved {output}{description}")


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

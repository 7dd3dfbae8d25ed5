"""`oarlock prune`: extract the part of a model that computes given variables."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.checkpoint_option import checkpoint_option, require_no_checkpoint
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import destination
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.io.model import load_model, save_model

__all__ = ["prune"]


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
        from oarlock.cli.run_checkpoint import choose_checkpoint, predicting

        model, said = choose_checkpoint(path, checkpoint or "best", untrusted=untrusted)
        model, said = model if targets else predicting(model, path), f": {said}"
    else:
        model, said = load_model(path, untrusted=untrusted), ""
    if not targets and not said:
        raise ArgumentError(
            f'no variable of the model file "{path}" is given',
            given=[f"it computes {', '.join(model.program.targets)}"],
            hint=f"oarlock prune {path} {next(iter(model.program.targets), 'NAME')} --output {output}",
        )
    kept = {name: model.program.get_target(name) for name in targets} or model.program
    save_model(kept, model, destination(output), columns=model.columns)
    typer.echo(f"saved {output}{said}")

"""`oarlock prune`: keep the part of a model that some variables need."""

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
    path: Annotated[Path, typer.Argument(metavar="RUN | MODEL.safetensors", help="The folder of a run, or a model file.")],
    targets: Annotated[
        list[str], typer.Argument(help="What to keep: targets or variables of the main block, by name; what predicts, of a run.")
    ] = [],  # noqa: B006  typer copies it
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save what is left.")],
    checkpoint: Annotated[str | None, checkpoint_option("best")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Save the part of a model that some variables need: `oarlock prune run.safetensors predict -o predict.safetensors`.

    Of a run, it saves what predicts: [bold]oarlock prune runs/one -o model.safetensors[/] is for the best epoch what `oarlock train --save`
    is for the last one.
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
            f'nothing says what to keep of the model file "{path}"',
            given=[f"it computes {', '.join(model.program.targets)}"],
            hint=f"oarlock prune {path} {next(iter(model.program.targets), 'NAME')} --output {output}",
        )
    kept = {name: model.program.get_target(name) for name in targets} or model.program
    save_model(kept, model, destination(output), columns=model.columns)
    typer.echo(f"saved {output}{said}")

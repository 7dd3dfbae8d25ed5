"""`oarlock report`: a run as one page."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import is_child, write
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.report.page import draw_report
from oarlock.runtime.process import configure_process
from oarlock.training.run_plot import SMOOTH

__all__ = ["report"]


def _beside(context: typer.Context, out: Path | None) -> Path | None:
    """The page of a run is put in its folder, unless a place was given. Raises ArgumentError where a link there leads elsewhere."""
    run = context.params.get("run")
    if out is not None or run is None:
        return out
    out = Path(run) / "report.html"
    if out.is_symlink():
        raise ArgumentError(f'"{out}" is a symbolic link, and the page would replace what it leads to', hint="--out FILE.html")
    return out


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run: finished, running, or killed.")],
    out: Annotated[
        Path | None,
        typer.Option(callback=_beside, metavar="FILE.html", help="Where the page goes; report.html in the folder, if not given."),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Curves with a logarithmic axis of values.")] = False,
    smooth: Annotated[
        float, typer.Option(help="The weight of steps before, from 0 to less than 1; 0 draws training as measured.")
    ] = SMOOTH,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Write a run as one HTML page: curves, measures, predictions, the drawn program, configuration, time, environment, checkpoints.

    The page is one file that needs no other and no network. It holds the few rows of data that the run kept, and what its best checkpoint
    predicts for them: look at it before you give it away. A folder of somebody else is read with [bold]--untrusted[/].
    """
    assert out is not None
    if not out.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{out.parent}"' if run.is_dir() else f'there is no folder "{run}"')
    configure_process(keep_memory=not is_child())
    write(out, draw_report(run, log=log, smooth=smooth, untrusted=untrusted).encode())
    typer.echo(f"saved {out}")

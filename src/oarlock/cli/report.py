"""`oarlock report`: write an HTML report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Imports
from oarlock.cli.output_file import is_child, write
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.report.page import draw_report
from oarlock.runtime.process import configure_process
from oarlock.training.run_plot import SMOOTH

__all__ = ["report"]


def _beside(context: typer.Context, out: Path | None) -> Path | None:
    """Default the output to report.html in the run folder. Raises ArgumentError if that is a symbolic link."""
    run = context.params.get("run")
    if out is not None or run is None:
        return out
    out = Path(run) / "report.html"
    if out.is_symlink():
        raise ArgumentError(f'"{out}" is a symbolic link, and its target would be overwritten', hint="--out FILE.html")
    return out


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder: finished, running or interrupted.")],
    out: Annotated[
        Path | None,
        typer.Option(callback=_beside, metavar="FILE.html", help="Path of the report. Default: report.html in the run folder."),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Use a logarithmic value axis for curves.")] = False,
    smooth: Annotated[
        float, typer.Option(help="Smoothing of training curves, from 0 (none) to less than 1: the weight of previous steps.")
    ] = SMOOTH,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Write an HTML report of a run: curves, metrics, predictions, the program, configuration, timing, environment, checkpoints.

    The report is a single self-contained file. It includes the sample rows stored with the run and the predictions of the best checkpoint
    for them: review it before you share it. Read a run folder that you do not trust with [bold]--untrusted[/].
    """
    assert out is not None
    if not out.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{out.parent}"' if run.is_dir() else f'there is no folder "{run}"')
    configure_process(keep_memory=not is_child())
    write(out, draw_report(run, log=log, smooth=smooth, untrusted=untrusted).encode())
    typer.echo(f"saved {out}")

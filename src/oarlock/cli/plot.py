"""`oarlock plot`: draw the curves of runs in the terminal or as an image."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.training.run_plot import SMOOTH
from oarlock.training.run_plot import plot as plot_folders
from oarlock.training.run_record import RunRecord

__all__ = ["plot"]


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders: finished, running or interrupted.")],
    out: Annotated[Path | None, typer.Option(help="Write a .png, .svg or .pdf file instead of drawing in the terminal.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Metric to draw, such as loss. Repeatable.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Use a logarithmic value axis.")] = False,
    smooth: Annotated[
        float,
        typer.Option(help="Smoothing of training curves, from 0 (none) to less than 1: the weight of previous steps."),
    ] = SMOOTH,
) -> None:
    r"""Draw the curves of runs: one chart per metric, one color per run, training and validation together.

    [bold]oarlock plot runs/one runs/two[/] draws in the terminal; [bold]--out losses.svg[/] writes an image. PNG and PDF need matplotlib:
    [bold]pip install "oarlock\\[plot]"[/].
    """
    read = [RunRecord.read(run, follow=False) for run in runs]  # run folders are untrusted
    drawn = plot_folders(*read, metrics=metric or (), log=log, smooth=smooth)
    if out is None:
        drawn.show()
    else:
        drawn.save(out)
        typer.echo(f"saved {out}")

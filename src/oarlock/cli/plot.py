"""`oarlock plot`: the curves of runs, in the terminal or as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.training.run_plot import SMOOTH
from oarlock.training.run_plot import plot as plot_folders
from oarlock.training.run_record import RunRecord

__all__ = ["plot"]


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of one or more runs: finished, running, or killed.")],
    out: Annotated[Path | None, typer.Option(help="Write a .png, .svg or .pdf, instead of drawing in the terminal.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="What to draw, such as loss; may be given more than once.")] = None,
    log: Annotated[bool, typer.Option("--log", help="A logarithmic axis of values.")] = False,
    smooth: Annotated[
        float,
        typer.Option(help="The weight of steps before, from 0 to less than 1; 0 draws training as it was measured."),
    ] = SMOOTH,
) -> None:
    """Draw the curves of runs: a chart for each metric, a color for each run, validation beside training.

    [bold]oarlock plot runs/one runs/two[/] draws in the terminal; [bold]--out losses.svg[/] writes a picture. PNG and PDF take matplotlib,
    [bold]pip install "oarlock\\[plot]"[/].
    """
    read = [RunRecord.read(run, follow=False) for run in runs]  # which may be a stranger's
    drawn = plot_folders(*read, metrics=metric or (), log=log, smooth=smooth)
    if out is None:
        drawn.show()
    else:
        drawn.save(out)
        typer.echo(f"saved {out}")

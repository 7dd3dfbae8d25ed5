"""`oarlock runs` compares runs, `oarlock plot` draws their curves."""

from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from oarlock.errors import visible
from oarlock.plotting.axis import format_number
from oarlock.report.markup import seconds_text
from oarlock.training.run_comparison import RunComparison, latest_values
from oarlock.training.run_plot import SMOOTH
from oarlock.training.run_plot import plot as plot_folders
from oarlock.training.run_record import RunRecord

__all__ = ["plot", "runs"]


def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER...]", help="Run folders, or folders that contain them. Default: runs/.")
    ] = None,
    by: Annotated[str | None, typer.Option(help='Metric to sort by, best run first, such as "validation loss".')] = None,
) -> None:
    """List and compare runs: progress, time, settings that differ, metrics of the last epoch, and the best epoch.

    The best value of each metric has a star. Failures, and runs of the same program, are listed below the table. In a narrow terminal, each
    run is a column.
    """
    given = folders or [Path("runs")]
    found = RunComparison.read(given)
    if by is not None:
        found = found.ordered_by(by)
    console = Console(soft_wrap=True, highlight=False)
    if not found.runs and not found.broken:
        console.print(f"no runs in {', '.join(map(str, given))}", markup=False)
        return
    if found.runs:
        rows = _rows(found)
        turned = [list(column) for column in zip(*rows, strict=True)]
        console.print(_table(turned if _width(turned) <= console.width < _width(rows) else rows))
    for run in found.runs:
        if run.state == "failed":
            console.print(Text(f"{visible(run.name)} failed: {visible(run.log.failed)}", style="red"))
    for path, error in found.broken.items():
        console.print(Text(f"{visible(path.name)}: {error.message}", style="red"))
    if len(found.programs) > 1 and len(found.programs) < len(found.runs):
        groups = [", ".join(visible(run.name) for run in group) for group in found.programs.values() if len(group) > 1]
        console.print(Text(f"runs of the same program: {'; '.join(groups)}", style="dim"))


def _rows(found: RunComparison) -> list[list[str]]:
    """Return a row of column names, then one row per run."""
    judged = next((run.judged_by for run in found.runs if run.judged_by is not None), None)
    head = ["run", "program", "state", *found.settings, "epochs", "step", "time", *found.labels]
    rows = [[*head, *([] if judged is None else [f"best {judged}"])]]
    winners = {label: found.winner(label) for label in found.labels}
    best_run = None if judged is None else found.winner_of_best(judged)
    for number, run in enumerate(found.runs):
        last, best = latest_values(run), None if judged is None else run.best(judged)
        epochs = run.history[-1].epoch if run.history else 0
        row = [run.name, run.program_hash[:8], run.state, *(values[number] for values in found.settings.values())]
        row += [f"{epochs}/{run.epochs}", f"{run.steps}", seconds_text(run.log.seconds) or ""]
        row += [f"{format_number(last[label])}{' *' * (winners[label] is run)}" if label in last else "" for label in found.labels]
        if judged is not None:
            row.append("" if best is None else f"{format_number(best.values[judged])}, epoch {best.epoch}{' *' * (best_run is run)}")
        rows.append(row)
    return [[visible(cell) for cell in row] for row in rows]


def _width(rows: list[list[str]]) -> int:
    """Return the width of a table, in characters."""
    return sum(2 + max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)) - 2


def _table(rows: list[list[str]]) -> Text:
    """Format rows as an aligned table with a bold first row."""
    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    text = Text()
    for number, row in enumerate(rows):
        line = "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        text.append(line.rstrip() + "\n" * (number + 1 < len(rows)), style="" if number else "bold")
    return text


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

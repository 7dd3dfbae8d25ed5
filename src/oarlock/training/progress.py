"""Progress displays: a live bar in a terminal, one line per epoch elsewhere."""

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from oarlock.errors import NotFiniteError
from oarlock.training.metrics import Means

_BETWEEN = 0.1  # seconds between updates of the bar, which would otherwise slow down short steps

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "SilentDisplay", "format_metrics", "report_run_folder", "select_display"]


class Display(Protocol):
    """The interface of progress displays."""

    def start(self, *, done: int, total: int | None, epochs: int, unit: str) -> None:
        """Start, with `done` of `total` steps already finished; `total` is None if unknown."""
        ...

    def step(self, *, epoch: int, rows: int, means: Means) -> None:
        """Report a step of `rows` rows. `epoch` counts from 1, `means` are the means of the epoch so far."""
        ...

    def epoch(self, *, epoch: int, metrics: dict[str, float]) -> None:
        """Report a finished epoch. `metrics` include validation."""
        ...

    def stop(self) -> None:
        """End the display."""
        ...


def select_display(console: Console | None = None, *, kind: Literal["live", "plain", "quiet"] | None = None) -> "Display":
    """Return a display of the given kind or, by default, a live one in a terminal and plain lines elsewhere."""
    console = console or Console()
    if kind == "quiet":
        return SilentDisplay()
    return LiveDisplay(console) if kind == "live" or (kind is None and console.is_terminal) else PlainDisplay(console)


@contextlib.contextmanager
def report_run_folder(folder: Path, display: "Display", is_finished: Callable[[], bool], *, predicts: bool) -> Iterator[None]:
    """Print the run folder before training and the next command (`resume`, or `evaluate`, `report`, `infer`) after it.

    On an interrupt or error, the command is attached to the exception as a note. `predicts`: the run has a prediction program.
    """
    name = shlex.quote(str(folder))
    following = f"oarlock resume {name}"
    console = display.console if isinstance(display, LiveDisplay | PlainDisplay) else None
    if console is not None:
        console.print(f"run {folder}", highlight=False, markup=False, soft_wrap=True)
    try:
        yield
    except NotFiniteError:  # resuming would fail again
        raise
    except BaseException as error:
        error.add_note(f"Next: {following}")
        raise
    if console is not None:
        predicting = f", oarlock infer {name} --data DATA" if predicts else ""
        over = f"oarlock evaluate {name}, oarlock report {name}{predicting}; {following} --epochs N trains up to N epochs in total"
        console.print(f"Next: {over if is_finished() else following}", highlight=False, markup=False, soft_wrap=True)


def format_metrics(metrics: dict[str, float]) -> str:
    """Format metrics as `loss 0.1234  accuracy 97.5 %`: accuracies are printed in percent."""
    return "  ".join(
        f"{name} {value * 100:.1f} %" if name.rpartition(" ")[2] == "accuracy" else f"{name} {value:.4f}" for name, value in metrics.items()
    )


class _Clock:
    """A clock that measures rows per second and the remaining time since its start."""

    def __init__(self, remaining: int | None):
        self.remaining = remaining
        self.started = time.perf_counter()
        self.steps = 0
        self.rows = 0

    def tick(self, rows: int) -> None:
        self.steps += 1
        self.rows += rows

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / max(time.perf_counter() - self.started, 1e-9)

    @property
    def left(self) -> float | None:
        """The remaining seconds, if the number of steps is known."""
        if self.remaining is None:
            return None
        taken = time.perf_counter() - self.started
        return taken / max(self.steps, 1) * (self.remaining - self.steps)


class LiveDisplay:
    """A live progress bar; each epoch prints a line above it."""

    def __init__(self, console: Console):
        self.console = console
        self.progress = Progress(
            TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[metrics]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )

    def start(self, *, done: int, total: int | None, epochs: int, unit: str) -> None:
        self.unit = unit
        self.clock = _Clock(None if total is None else total - done)
        self.task = self.progress.add_task("", total=total, completed=done, epoch=1, epochs=epochs, metrics="", rate="")
        self.undrawn, self.due = 0, float("-inf")  # steps not yet shown, and the time of the next update
        self.progress.start()

    def step(self, *, epoch: int, rows: int, means: Means) -> None:
        self.clock.tick(rows)
        self.undrawn += 1
        self.shown = epoch, means
        if self.progress.get_time() >= self.due:
            self._draw()

    def epoch(self, *, epoch: int, metrics: dict[str, float]) -> None:
        self._draw()
        self.progress.console.print(f"epoch {epoch:>2}  {format_metrics(metrics)}", highlight=False)

    def stop(self) -> None:
        self._draw()
        self.progress.stop()

    def _draw(self) -> None:
        """Show the steps since the last update."""
        if self.undrawn:
            epoch, means = self.shown
            rate = f"{self.clock.rate:,.0f} {self.unit}/s"
            self.progress.update(self.task, advance=self.undrawn, epoch=epoch, metrics=format_metrics(means.values), rate=rate)
            self.undrawn, self.due = 0, self.progress.get_time() + _BETWEEN


class PlainDisplay:
    """One line per epoch."""

    def __init__(self, console: Console):
        self.console = console

    def start(self, *, done: int, total: int | None, epochs: int, unit: str) -> None:
        self.epochs = epochs
        self.unit = unit
        self.clock = _Clock(None if total is None else total - done)

    def step(self, *, epoch: int, rows: int, means: Means) -> None:
        self.clock.tick(rows)

    def epoch(self, *, epoch: int, metrics: dict[str, float]) -> None:
        left = "" if self.clock.left is None else f"  {self.clock.left:.0f} s left"
        line = f"epoch {epoch}/{self.epochs}  {format_metrics(metrics)}  {self.clock.rate:,.0f} {self.unit}/s{left}"
        self.console.print(line, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        pass


class SilentDisplay:
    """No output."""

    def start(self, *, done: int, total: int | None, epochs: int, unit: str) -> None:
        pass

    def step(self, *, epoch: int, rows: int, means: Means) -> None:
        pass

    def epoch(self, *, epoch: int, metrics: dict[str, float]) -> None:
        pass

    def stop(self) -> None:
        pass

"""Logger: who is told what a run measures."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

__all__ = ["Logger"]


@runtime_checkable
class Logger(Protocol):
    """Three functions that a run calls, in its own thread. Any object that has them is a logger:

        class Printed:
            def begin(self, settings, step):
                print("begins after step", step, "with batches of", settings["training"]["batch_size"])

            def log(self, step, values):
                if "validation/loss" in values:
                    print(step, values)

            def end(self, summary):
                print(summary["status"])

        ol.train(cost, data, loggers=[Printed()])

    One that raises is reported once, and told nothing more; the run goes on. It may have a fourth function, `flush()`, which is called
    before each checkpoint: what was logged by then outlives the process.
    """

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """A run begins, or goes on after `step`. A logger may hold later ones, of a process that was killed: those come again.

        `settings` say what the run is, as `run.json` in its folder does; `settings["id"]` is the same each time it goes on.
        """
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """`values` after `step`, from 1: "train/loss" of each step, "epoch/loss" and "epoch" of a pass over the data, "validation/loss"."""
        ...

    def end(self, summary: Mapping[str, object]) -> None:
        """No more is to come. `summary["status"]` is "finished", "interrupted" or "failed"; steps and the last measurements follow."""
        ...

"""The interface of metric loggers."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

__all__ = ["Logger"]


@runtime_checkable
class Logger(Protocol):
    """The interface of loggers: three methods that a run calls in its own thread. Any object that has them is a logger:

        class Printed:
            def begin(self, settings, step):
                print("begins after step", step, "with batches of", settings["training"]["batch_size"])

            def log(self, step, values):
                if "validation/loss" in values:
                    print(step, values)

            def end(self, summary):
                print(summary["status"])

        ol.train(cost, data, loggers=[Printed()])

    A logger that raises causes one warning and is not called again; training continues. An optional fourth method, `flush()`, is called
    before each checkpoint, and must store everything logged so far.
    """

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """Start a run, or resume it after `step`. Later steps may have been logged by a process that was killed; they are logged again.

        `settings` describe the run, like `run.json` in its folder; `settings["id"]` is the same after resuming.
        """
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log `values` after `step`, counted from 1.

        The labels are "train/loss" for each step, "epoch/loss" and "epoch" for each epoch, and "validation/loss".
        """
        ...

    def end(self, summary: Mapping[str, object]) -> None:
        """End the run.

        `summary["status"]` is "finished", "interrupted" or "failed"; the other entries are the steps and the last metrics.
        """
        ...

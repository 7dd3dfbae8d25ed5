"""The Weights & Biases logger."""

from collections.abc import Mapping
from typing import Any

from oarlock.training.loggers.selection import get_package

__all__ = ["WandB"]


class WandB:
    """A logger to the W&B `project`. `options` are passed to `wandb.init`, such as `mode="offline"`, `dir`, `name`, `entity`.

    A resumed run has the same id, and steps that W&B already has are not logged again. In offline mode these are unknown: a run that was
    killed is logged again from its last checkpoint, to a new folder. `settings` are added to the settings of the run. Raises ArgumentError
    without the package wandb: `pip install "oarlock[wandb]"`.
    """

    def __init__(self, project: str, *, settings: Mapping[str, object] | None = None, **options: Any):
        self.project, self.options = project, options
        self.settings = dict(settings or {})
        self._package = get_package("wandb")
        self._run: Any = None
        self._from = 0

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """Start the W&B run, or continue the one of an interrupted run."""
        given = {
            "project": self.project,
            "id": str(settings["id"]),
            "resume": "allow",
            "config": {**settings, **self.settings},
            **self.options,
        }
        self._run = self._package.init(**given)
        self._from = self._run.step if self._run.resumed else 0

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values of a step."""
        if step >= self._from:
            self._run.log(dict(values), step=step)

    def end(self, summary: Mapping[str, object]) -> None:
        """Set the summary and finish the W&B run."""
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=0 if summary.get("status") == "finished" else 1)

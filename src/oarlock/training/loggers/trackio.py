"""The trackio logger."""

from collections.abc import Mapping
from typing import Any

from oarlock.training.configuration import flatten
from oarlock.training.loggers.selection import get_package, new_to

__all__ = ["Trackio"]


class Trackio:
    """A logger to the trackio `project`, a database in the user's home folder.

    `options` are passed to `trackio.init`, such as `name` and `space_id`. A resumed run has the same name, and steps that the database
    already has are not logged again; with a remote space, all steps up to its last are skipped. `settings` are added to the settings of
    the run. Raises ArgumentError without the package trackio: `pip install "oarlock[trackio]"`.
    """

    def __init__(self, project: str, *, settings: Mapping[str, object] | None = None, **options: Any):
        self.project, self.options = project, options
        self.settings = dict(settings or {})
        self._package = get_package("trackio")
        self._run: Any = None
        self._held: dict[str, int] = {}

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """Start the trackio run, or continue the one of an interrupted run."""
        name = str(self.options.get("name") or settings["id"])
        self._held = self._last_steps(name)
        usual = {
            "resume": "allow",
            "embed": False,
            "auto_log_gpu": False,
            "auto_log_cpu": False,
            "config": flatten({**settings, **self.settings}),
        }
        self._run = self._package.init(**{"project": self.project, **usual, **self.options, "name": name})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values of a step."""
        new = new_to(self._held, step, values)
        if new:
            self._run.log(new, step=step)

    def end(self, summary: Mapping[str, object]) -> None:
        """Log the summary and finish the trackio run."""
        self._run.log({f"summary/{name}": value for name, value in summary.items()})
        self._run.finish()

    def _last_steps(self, name: str) -> dict[str, int]:
        held: dict[str, int] = {}
        for row in get_package("trackio.sqlite_storage").SQLiteStorage.get_logs(self.project, name):
            for label in row:
                held[label] = max(held.get(label, -1), row["step"])
        return held

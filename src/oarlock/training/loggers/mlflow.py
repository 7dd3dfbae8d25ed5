"""The MLflow logger."""

import time
from collections.abc import Mapping
from typing import Any

from oarlock.training.configuration import flatten
from oarlock.training.loggers.selection import get_package, new_to

__all__ = ["MLflow"]

_LONGEST = 6000  # characters of a parameter
_MOST = 1000  # metrics in one call
_APART = 1.0  # seconds between calls


class MLflow:
    """A logger to the MLflow server or database at `address`, as a run of `experiment` with settings as parameters.

    A resumed run is found by the tag `oarlock.id`, and steps that it already has are not logged again. Metrics are batched for a second,
    and sent before each checkpoint. `settings` are added to the settings of the run. A database at `sqlite:///...` needs the package
    mlflow; for a server, `mlflow-skinny` is enough. Raises ArgumentError without either: `pip install "oarlock[mlflow]"`.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        experiment: str = "oarlock",
        name: str | None = None,
        settings: Mapping[str, object] | None = None,
    ):
        self.experiment, self.name = experiment, name
        self.settings = dict(settings or {})
        self._entities: Any = get_package("mlflow").entities
        self._address = address
        self._client: Any = None
        self._run = ""
        self._held: dict[str, int] = {}
        self._goes_on = False
        self._gathered: list[Any] = []
        self._sent = 0.0

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """Start the MLflow run, or continue the one of an interrupted run."""
        self._client = client = get_package("mlflow").MlflowClient(tracking_uri=self._address, registry_uri=self._address)
        found = client.get_experiment_by_name(self.experiment)
        experiment = client.create_experiment(self.experiment) if found is None else found.experiment_id
        runs = client.search_runs([experiment], filter_string=f"tags.`oarlock.id` = '{settings['id']}'")
        self._goes_on, self._held = bool(runs), {}
        if runs:
            self._run = runs[0].info.run_id
            client.update_run(self._run, status="RUNNING")
            return
        tags = {"oarlock.id": str(settings["id"]), "mlflow.runName": self.name or str(settings["id"])}
        self._run = client.create_run(experiment, tags=tags).info.run_id
        entries = flatten({**settings, **self.settings})
        self._client.log_batch(self._run, params=[self._entities.Param(name, str(value)[:_LONGEST]) for name, value in entries.items()])

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the values of a step."""
        if self._goes_on:
            for label in values:
                if label not in self._held:
                    history = self._client.get_metric_history(self._run, label)
                    self._held[label] = max((metric.step for metric in history), default=-1)
            values = new_to(self._held, step, values)
        now = time.time()
        self._gathered += [self._entities.Metric(label, value, int(now * 1000), step) for label, value in values.items()]
        if now - self._sent >= _APART or len(self._gathered) > _MOST // 2:
            self.flush()

    def flush(self) -> None:
        """Send the values that have been recorded."""
        while self._gathered:
            some, self._gathered = self._gathered[:_MOST], self._gathered[_MOST:]
            self._client.log_batch(self._run, metrics=some)
        self._sent = time.time()

    def end(self, summary: Mapping[str, object]) -> None:
        """Send the remaining values and the summary, and close the MLflow run."""
        self.flush()
        for name, value in summary.items():
            self._client.set_tag(self._run, f"summary.{name}", str(value))
        status = {"finished": "FINISHED", "interrupted": "KILLED"}.get(str(summary.get("status")), "FAILED")
        self._client.set_terminated(self._run, status=status)

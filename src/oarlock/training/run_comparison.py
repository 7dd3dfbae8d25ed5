"""Comparing runs by their metrics and settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from oarlock.errors import ArgumentError, MissingFileError, OarlockError
from oarlock.training.run_record import RunRecord, higher_is_better

__all__ = ["RunComparison", "flat_settings", "latest_values"]

_OF_EACH = {
    "id",
    "program",
    "started",
    "command",
    "environment",
    "working_folder",
    "targets",
}  # entries of run.json that always differ
_OMITTED = {"training.epochs", "train.epochs", "train.save", "train.run"}  # epochs have their own column; output paths always differ
_LONGEST = 24  # characters of a setting


@dataclass(frozen=True)
class RunComparison:
    """The runs that were read, and the errors of unreadable ones by folder."""

    runs: tuple[RunRecord, ...]
    broken: dict[Path, OarlockError]

    @classmethod
    def read(cls, folders: Sequence[Path]) -> "RunComparison":
        """Read the runs in `folders`, each of which is a run folder or contains run folders. The files that are read must not be links.

        Raises MissingFileError for a missing folder.
        """
        found: list[RunRecord] = []
        broken: dict[Path, OarlockError] = {}
        for folder in folders:
            if not folder.is_dir():
                raise MissingFileError(f'there is no folder "{folder}"')
            one = (folder / "run.json").exists()
            for path in [folder] if one else sorted(about.parent for about in folder.glob("*/run.json")):
                try:
                    found.append(RunRecord.read(path, follow=False))
                except OarlockError as error:
                    broken[path] = error
        return cls(tuple(found), broken)

    @cached_property
    def labels(self) -> list[str]:
        """The labels of all metrics of epochs."""
        return list(dict.fromkeys(label for run in self.runs for label in latest_values(run)))

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """The settings that differ between runs, such as "batch_size", with a text for each run, empty if it has none."""
        flat = [
            flat_settings(run.settings) | flat_settings({name: value for name, value in run.about.items() if name not in _OF_EACH})
            for run in self.runs
        ]
        names = dict.fromkeys(name for each in flat for name in each if name not in _OMITTED)
        texts = {name: [each.get(name, "") for each in flat] for name in names}
        return {name.removeprefix("training."): values for name, values in texts.items() if len(set(values)) > 1}

    @cached_property
    def programs(self) -> dict[str, list[RunRecord]]:
        """The runs by the content hash of their programs."""
        found: dict[str, list[RunRecord]] = {}
        for run in self.runs:
            found.setdefault(run.program_hash, []).append(run)
        return found

    def winner(self, label: str) -> RunRecord | None:
        """Return the run with the best last value of a metric, or None if fewer than two have it, or on a tie."""
        return self._winner(label, [(run, latest_values(run).get(label, math.nan)) for run in self.runs])

    def winner_of_best(self, label: str) -> RunRecord | None:
        """Return the run with the best value of a metric in any epoch, or None if fewer than two have it, or on a tie."""
        bests = [(run, run.best(label)) for run in self.runs]
        return self._winner(label, [(run, math.nan if best is None else best.values[label]) for run, best in bests])

    def _winner(self, label: str, values: list[tuple[RunRecord, float]]) -> RunRecord | None:
        finite = [value for _, value in values if not math.isnan(value)]
        best = (max if higher_is_better(label) else min)(finite, default=None)
        found = [run for run, value in values if value == best]
        return found[0] if len(found) == 1 and len(finite) > 1 else None

    def ordered_by(self, label: str) -> "RunComparison":
        """Return the runs sorted by their best value of a metric, best first, runs without it last. "best loss" means "loss".

        Raises ArgumentError if no run has the metric.
        """
        label = label if label in self.labels else label.removeprefix("best ")
        if label not in self.labels:
            raise ArgumentError(f'no run measured "{label}"', given=[f"metrics: {', '.join(self.labels) or 'none'}"])
        sign = -1 if higher_is_better(label) else 1

        def place(run: RunRecord) -> float:
            best = run.best(label)
            return math.inf if best is None else sign * best.values[label]

        return RunComparison(tuple(sorted(self.runs, key=place)), self.broken)


def latest_values(run: RunRecord) -> dict[str, float]:
    """Return the metrics of the last epoch and the last validation of a run by label."""
    return {label: value for record in (*run.history[-1:], *run.validations[-1:]) for label, value in record.values.items()}


def flat_settings(settings: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Return nested settings as texts by dotted names; at most a hundred per level."""
    found: dict[str, str] = {}
    for name, value in list(settings.items())[:100]:
        if isinstance(value, dict) and before.count(".") < 5:
            found |= flat_settings(value, f"{before}{name}.")
        else:
            text = "" if value is None else str(value)
            found[f"{before}{name}"[:80]] = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return found

"""The TensorBoard logger."""

import json
import os
import platform
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from oarlock.training.configuration import flatten
from oarlock.training.loggers.selection import get_package

__all__ = ["TensorBoard"]

_PREFIX = "events.out.tfevents."


class TensorBoard:
    """A logger to event files in `folder`, one for each time that the run is started or resumed. `tensorboard --logdir FOLDER` shows them.

    Each call is written immediately, so a killed process loses nothing. If a run resumes after a step, its file records that, and
    TensorBoard drops later steps of earlier files. `settings` are added to the settings of the run. Raises ArgumentError without the
    package tensorboard: `pip install "oarlock[tensorboard]"`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, settings: Mapping[str, object] | None = None):
        self.folder = Path(folder)
        self.settings = dict(settings or {})
        get_package("tensorboard")
        self._event: Any = import_module("tensorboard.compat.proto.event_pb2")
        self._summary: Any = import_module("tensorboard.compat.proto.summary_pb2")
        self._tensor: Any = import_module("tensorboard.compat.proto.tensor_pb2")
        self._records: Any = import_module("tensorboard.summary.writer.record_writer")
        self._file: Any = None

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        """Open the event file and write the settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        there = sorted(self.folder.glob(f"{_PREFIX}*"))
        goes_on = any(path.name.endswith(f".{settings['id']}") for path in there)
        latest = there[-1].name.removeprefix(_PREFIX).partition(".")[0] if there else ""
        second = max(int(time.time()), int(latest) + 1 if latest.isdecimal() else 0)  # files are read in name order
        name = f"{_PREFIX}{second:010d}.{platform.node() or 'here'}.{os.getpid()}.{settings['id']}"
        self._file = self._records.RecordWriter(open(self.folder / name, "xb"))  # noqa: SIM115  kept open until the run ends
        self._write(file_version="brain.Event:2")
        if goes_on:
            start = self._event.SessionLog(status=self._event.SessionLog.START)
            self._write(step=step + 1, session_log=start)
        else:
            self._text("settings", flatten({**settings, **self.settings}), step)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step."""
        scalars = [self._summary.Summary.Value(tag=label, simple_value=value) for label, value in values.items()]
        self._write(step=step, summary=self._summary.Summary(value=scalars))

    def end(self, summary: Mapping[str, object]) -> None:
        """Write the summary and close the event file."""
        self._text("summary", summary, int(str(summary.get("steps", 0))))
        self._file.close()

    def _text(self, tag: str, entries: Mapping[str, object], step: int) -> None:
        """Write a table of names and values."""
        lines = ["| name | value |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in entries.items())]
        data = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        tensor = self._tensor.TensorProto(dtype="DT_STRING", string_val=["\n".join(lines).encode()], tensor_shape={"dim": [{"size": 1}]})
        value = self._summary.Summary.Value(tag=tag, metadata=self._summary.SummaryMetadata(plugin_data=data), tensor=tensor)
        self._write(step=step, summary=self._summary.Summary(value=[value]))

    def _write(self, **event: Any) -> None:
        self._file.write(self._event.Event(wall_time=time.time(), **event).SerializeToString())
        self._file.flush()


def _cell(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value, default=str)).replace("|", "\\|").replace("\n", " ")

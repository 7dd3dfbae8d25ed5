"""Writing the log of a run: one line of JSON for each step, each epoch, and the start and end of the run."""

import contextlib
import json
import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

from oarlock.io.atomic_write import write_file
from oarlock.training.metric_log import lines_of

__all__ = ["MetricLogWriter"]

_AT_ONCE = 64  # steps per write


class MetricLogWriter:
    """The writer of a log, after `begin`. If the system refuses a line, it warns and stops writing."""

    def __init__(self, path: Path):
        self._path = path
        self._file: IO[str] | None = None
        self._labels: tuple[str, ...] = ()
        self._pattern = _pattern(())  # the format of a line with these labels
        self._steps: list[tuple[Any, ...]] = []  # the numbers of buffered steps with these labels

    def begin(self, steps: int) -> None:
        """Discard metrics logged after `steps`, and continue there. Raises WriteError, and the errors of reading a log."""
        lines = lines_of(self._path) if os.path.lexists(self._path) else ()
        write_file(self._path, b"".join(line.rstrip(b"\n") + b"\n" for line, is_whole in lines if is_whole and _step_of(line) <= steps))
        self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115  kept open until the run ends

    def step(self, step: int, epoch: int, rows: int, values: Mapping[str, float]) -> None:
        """Log a step. It is only buffered here, because a step may take no longer than that."""
        labels = tuple(values)
        if labels != self._labels:
            self._write_steps()
            self._labels, self._pattern = labels, _pattern(labels)
        self._steps.append((step, epoch, rows, *values.values(), time.time()))
        if len(self._steps) >= _AT_ONCE:
            self._write_steps()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Log any other entry, with the time."""
        self._write_steps()
        self._write_line(json.dumps({**entry, "time": round(time.time(), 6)}))

    def flush(self) -> None:
        """Write all buffered entries, for readers of the log."""
        self._write_steps()
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                self._file.flush()

    def close(self) -> None:
        self._write_steps()
        if self._file is not None:
            self._file.close()

    def _write_steps(self) -> None:
        """Write the buffered steps.

        Finite numbers are formatted with a pattern, in less than half the time of the JSON encoder.
        """
        steps, self._steps = self._steps, []
        if not steps:
            return
        numbers = tuple(chain.from_iterable(steps))
        if math.isfinite(sum(numbers)):
            self._write_line("\n".join([self._pattern] * len(steps)) % numbers)
            return
        for step, epoch, rows, *values, now in steps:
            known = {"step": step, "epoch": epoch, "rows": rows, **dict(zip(self._labels, values, strict=True))}
            self._write_line(json.dumps({**known, "time": round(now, 6)}))

    def _write_line(self, line: str) -> None:
        if self._file is not None:
            try:
                self._file.write(line + "\n")
            except OSError as error:
                warnings.warn(f'"{self._path}" cannot be written: {error.strerror}. Training continues', RuntimeWarning, stacklevel=2)
                self._file = None


def _pattern(labels: Sequence[str]) -> str:
    """Return the JSON line of a step as a `%` format: step, epoch, rows, a number for each label, and the time."""
    spelled = "".join([f"{json.dumps(label).replace('%', '%%')}: %r, " for label in labels])
    return f'{{"step": %d, "epoch": %d, "rows": %d, {spelled}"time": %.6f}}'


def _step_of(line: bytes) -> float:
    """Return the step of a line of the log; infinity for a truncated one."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")

"""The log of a run while it is written: a line of JSON for each step, for the end of an epoch, and for how the run began and ended."""

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

_AT_ONCE = 64  # steps that are written by one call


class MetricLogWriter:
    """Writes the log at a path, once it has begun. Where the system refuses a line, that is warned of, and no more are written."""

    def __init__(self, path: Path):
        self._path = path
        self._file: IO[str] | None = None
        self._labels: tuple[str, ...] = ()
        self._pattern = _pattern(())  # of a line with these labels
        self._steps: list[tuple[Any, ...]] = []  # the numbers of steps with these labels that are noted, and not written yet

    def begin(self, steps: int) -> None:
        """Truncate what was measured after `steps`, and continue there. Raises WriteError, and what reading a log raises."""
        lines = lines_of(self._path) if os.path.lexists(self._path) else ()
        write_file(self._path, b"".join(line.rstrip(b"\n") + b"\n" for line, is_whole in lines if is_whole and _step_of(line) <= steps))
        self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115  it is written until the run ends

    def step(self, step: int, epoch: int, rows: int, values: Mapping[str, float]) -> None:
        """Log a step. It is noted here, and spelled with others: a step may take no longer than that."""
        labels = tuple(values)
        if labels != self._labels:
            self._write_steps()
            self._labels, self._pattern = labels, _pattern(labels)
        self._steps.append((step, epoch, rows, *values.values(), time.time()))
        if len(self._steps) >= _AT_ONCE:
            self._write_steps()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Log anything else, with the time."""
        self._write_steps()
        self._write_line(json.dumps({**entry, "time": round(time.time(), 6)}))

    def flush(self) -> None:
        """Let who looks at the log see all of it."""
        self._write_steps()
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                self._file.flush()

    def close(self) -> None:
        self._write_steps()
        if self._file is not None:
            self._file.close()

    def _write_steps(self) -> None:
        """Write the steps that were noted: by one pattern, in less than half the time of the encoder of JSON. That is asked where a number
        is not finite.
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
                warnings.warn(f'"{self._path}" cannot be written: {error.strerror}. The run goes on', RuntimeWarning, stacklevel=2)
                self._file = None


def _pattern(labels: Sequence[str]) -> str:
    """The line of a step in the log, as JSON, for `%`: it has the step, the epoch, the rows, a number for each label, and the time."""
    spelled = "".join([f"{json.dumps(label).replace('%', '%%')}: %r, " for label in labels])
    return f'{{"step": %d, "epoch": %d, "rows": %d, {spelled}"time": %.6f}}'


def _step_of(line: bytes) -> float:
    """The step of a line of the log; infinite for one that was truncated."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")

"""The log of a run, `metrics.jsonl`: the metrics of each step and epoch, and the times of starting and resuming."""

import contextlib
import json
import math
import os
import time
import warnings
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy

from oarlock.errors import ArgumentError, LimitError
from oarlock.io.atomic_write import write_file
from oarlock.io.files import open_file
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = ["LOG", "MetricLog", "MetricLogWriter", "Session", "lines_of", "read_log", "require_loggable"]

_LARGEST = 4 * 2**30  # bytes of a log
_LONGEST = 2**16  # bytes of a line
_SKIPPED = 2**10  # the largest line to skip, in units of _LONGEST: a longer one means that the file is not a log
_LABELS = 200  # of a run
_LATEST = 1e12  # seconds since 1970
_NAMES = {"step", "epoch", "rows", "time"}  # keys of the line of a step that are not metrics
LOG = "metrics.jsonl"
_LONGEST_REASON = 300  # characters
_KINDS = {"training", "validation", "environment", "ended", "failed"}  # keys that identify other kinds of lines


@dataclass(frozen=True)
class Session:
    """A session of a run, from starting or resuming: the step before it, its time, its number of epochs, and the machine."""

    step: int
    time: float | None
    epochs: int | None
    environment: dict[str, str]


@dataclass
class MetricLog:
    """The contents of a log, with the newest entry for each step.

    `steps`, `rows` and `times` are parallel arrays, float64[n]; times are seconds since 1970, NaN if the log has none. `measured` maps the
    label of each metric to its steps and values, float64 arrays of equal length. `failed` is the reason why the run stopped by itself,
    empty if it did not or was resumed. `skipped` counts unreadable lines, except for a truncated last line.
    """

    steps: numpy.ndarray
    rows: numpy.ndarray
    times: numpy.ndarray
    measured: dict[str, tuple[numpy.ndarray, numpy.ndarray]]
    epochs: list[EpochRecord] = field(default_factory=list)
    validations: list[ValidationRecord] = field(default_factory=list)
    epoch_times: dict[int, float] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    is_ended: bool = False
    failed: str = ""
    skipped: int = 0

    @property
    def last_step(self) -> int:
        """The last logged step, 0 if there is none."""
        last = self.epochs[-1].step if self.epochs else 0
        return max(last, int(self.steps[-1]) if len(self.steps) else 0)

    @property
    def durations(self) -> numpy.ndarray:
        """Seconds between the ends of consecutive steps, float64[n], omitting steps that follow the end of an epoch or a resumption."""
        breaks = {record.step for record in (*self.epochs, *self.validations, *self.sessions)}
        if len(self.steps) < 2:
            return numpy.empty(0)
        follows = (numpy.diff(self.steps) == 1) & ~numpy.isin(self.steps[:-1], list(breaks))
        taken = numpy.diff(self.times)[follows]
        return taken[numpy.isfinite(taken) & (taken >= 0)]

    @property
    def seconds(self) -> float | None:
        """The total duration of the run without interruptions, in seconds; None if the log has no times."""
        total, known = 0.0, False
        ends = [*(float(session.step) for session in self.sessions[1:]), math.inf]
        for session, end in zip(self.sessions, ends, strict=False):
            inside = (self.steps > session.step) & (self.steps <= end) & numpy.isfinite(self.times)
            times = self.times[inside].tolist()
            ended = [self.epoch_times[record.epoch] for record in self.epochs if session.step < record.step <= end]
            times += [time for time in ended if math.isfinite(time)]
            if session.time is not None and times:
                total, known = total + max(max(times) - session.time, 0.0), True
        return total if known else None


def require_loggable(labels: Iterable[str]) -> None:
    """Raise ArgumentError for a metric label that is reserved in the log."""
    for label in labels:
        if label in _NAMES | _KINDS:
            raise ArgumentError(f'show: the label "{label}" is reserved in the log of a run; use another one')


def read_log(path: Path, *, untrusted: bool = False, follow: bool = True) -> MetricLog:
    """Read a log line by line; return an empty one if there is no file. With `follow=False` it must not be a symbolic link.

    Raises LimitError, ReadError, or FormatError if it is not a regular file.
    """
    reader = _Reader()
    if os.path.lexists(path):
        for line, is_whole in lines_of(path, untrusted=untrusted, follow=follow):
            reader.take(line, is_whole)
    return reader.log()


def lines_of(path: Path, *, untrusted: bool = False, follow: bool = True) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of a log, each with whether it is complete: neither too long nor truncated.

    Raises FormatError if it is a link or not a regular file, ReadError, or LimitError if the file or a line is far too long.
    """
    descriptor, status = open_file(path, untrusted=untrusted, follow=follow)
    with open(descriptor, "rb") as file:
        if status.st_size > _LARGEST:
            raise LimitError(f'"{path}" has {status.st_size:,} bytes, but the limit is {_LARGEST:,}')
        is_inside, skipped = False, 0  # state of an overlong line
        while piece := file.readline(_LONGEST):
            is_end = piece.endswith(b"\n")
            skipped = skipped + 1 if is_inside else 0
            if skipped > _SKIPPED:
                raise LimitError(f'"{path}" has a line of more than {_SKIPPED * _LONGEST:,} bytes, so it is not a log')
            if not is_inside and (is_end or len(piece) < _LONGEST):
                yield piece, True
            elif not is_inside:
                yield b"", False
            is_inside = not is_end


class _Reader:
    """The entries of a log while it is read."""

    def __init__(self) -> None:
        self.steps, self.rows, self.times = array("d"), array("d"), array("d")
        self.measured: dict[str, tuple[array, array]] = {}
        self.epochs: dict[int, EpochRecord] = {}
        self.validations: dict[int, ValidationRecord] = {}
        self.epoch_times: dict[int, float] = {}
        self.sessions: list[Session] = []
        self.is_ended, self.failed = False, ""
        self.skipped = self.torn = 0
        self.labels: set[str] = set()

    def take(self, line: bytes, is_whole: bool) -> None:
        self.skipped, self.torn = self.skipped + self.torn, 0
        try:
            entry = json.loads(line) if is_whole and line.startswith(b"{") else None
        except (ValueError, RecursionError):
            entry = None
        step = entry.get("step") if isinstance(entry, dict) else None
        if entry is None or type(step) is not int or not 0 <= step < 2**53:
            if line.endswith(b"\n") or not is_whole:
                self.skipped += 1
            else:
                self.torn = 1  # the last line, unless others follow
            return
        self._sort(entry, step)

    def _sort(self, entry: dict[str, Any], step: int) -> None:
        """Store an entry by its kind."""
        time = _number(entry.get("time"))
        time = time if time is not None and abs(time) < _LATEST else None
        if "environment" in entry:
            facts = entry["environment"] if isinstance(entry["environment"], dict) else {}
            environment = {str(name): str(value)[:200] for name, value in list(facts.items())[:50]}
            epochs = entry.get("epochs")
            self.sessions.append(Session(step, time, epochs if type(epochs) is int and 0 <= epochs < 2**32 else None, environment))
            self.is_ended, self.failed = False, ""
        elif "training" in entry or "validation" in entry:
            number, training, validation = entry.get("epoch"), _numbers(entry.get("training")), _numbers(entry.get("validation"))
            self._know({*training, *validation})
            if type(number) is int and "training" in entry:
                self.epochs[number] = EpochRecord(number, training, validation, step)
                self.epoch_times[number] = math.nan if time is None else time
            elif type(number) is int:
                self.validations[step] = ValidationRecord(number, validation, step)
        elif "ended" in entry:
            self.is_ended = entry["ended"] is True
        elif "failed" in entry:
            self.failed = str(entry["failed"])[:_LONGEST_REASON]
        elif "rows" in entry:
            self.is_ended = False
            self.steps.append(step)
            self.rows.append(_number(entry["rows"]) or math.nan)
            self.times.append(math.nan if time is None else time)
            found = _numbers({label: value for label, value in entry.items() if label not in _NAMES})
            self._know(found)
            for label, value in found.items():
                steps, values = self.measured.setdefault(label, (array("d"), array("d")))
                steps.append(step)
                values.append(value)

    def _know(self, labels: Collection[str]) -> None:
        """Count the labels of metrics. Raises LimitError if there are too many."""
        self.labels.update(labels)
        if len(self.labels) > _LABELS:
            raise LimitError(f"a run has more than {_LABELS} metrics")

    def log(self) -> MetricLog:
        steps, rows, times = (numpy.array(column) for column in (self.steps, self.rows, self.times))
        newest = _newest(steps)
        measured = {}
        for label, (at, values) in self.measured.items():
            found = numpy.array(at)
            kept = _newest(found)
            measured[label] = (found[kept], numpy.array(values)[kept])
        epochs = [self.epochs[number] for number in sorted(self.epochs)]
        validations = [self.validations[step] for step in sorted(self.validations)]
        found = MetricLog(steps[newest], rows[newest], times[newest], measured, epochs, validations, self.epoch_times, self.sessions)
        found.is_ended, found.failed, found.skipped = self.is_ended, self.failed, self.skipped
        return found


def _newest(steps: numpy.ndarray) -> numpy.ndarray:
    """Return the indices of the last entry for each step, ordered by step: int64[n]."""
    _, last = numpy.unique(steps[::-1], return_index=True)
    return len(steps) - 1 - last


def _numbers(entry: object) -> dict[str, float]:
    """Return the numbers in a dict by label; empty for other types."""
    found = {str(label)[:200]: _number(value) for label, value in entry.items()} if isinstance(entry, dict) else {}
    return {label: value for label, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    """Return a number as a float, NaN and infinities included; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


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

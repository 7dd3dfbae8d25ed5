"""Tables of a run: metrics, configuration, environment, timing and checkpoints."""

import shlex
from collections.abc import Mapping, Sequence

import numpy

from oarlock.drawing.details import memory_text
from oarlock.ir.program import Program
from oarlock.plotting.axis import format_number
from oarlock.report.markup import facts, seconds_text, table, text, time_text
from oarlock.training.records import EpochRecord, ValidationRecord
from oarlock.training.run_comparison import flat_settings
from oarlock.training.run_record import RunRecord, higher_is_better

__all__ = ["best_table", "checkpoint_table", "configuration", "environment", "epoch_table", "timings"]

_SHOWN = 50  # checkpoints to show at most
_OWN = {
    "id",
    "program",
    "seed",
    "training",
    "targets",
    "data",
    "command",
    "working_folder",
    "started",
    "environment",
}  # entries that are shown separately


def configuration(run: RunRecord, program: Program | None) -> str:
    """Return the settings of the run: its training options, data and command."""
    about = run.about
    training = {name: value for name, value in about["training"].items() if name != "epochs"}
    parameters = None if program is None else sum(_elements(var.shape) for var in program.parameters())
    command = about.get("command")
    pairs: list[tuple[str, str | None]] = [
        ("epochs", f"{run.epochs:,}"),
        *((name.replace("_", " "), text(value)) for name, value in training.items() if value is not None),
        ("data", None if about.get("data") == "Source" else _said(about.get("data"))),
        ("metrics", _said(", ".join(map(str, about["targets"]))) if isinstance(about.get("targets"), list) else None),
        ("seed", _said(about.get("seed"))),
        ("parameters", None if parameters is None else f"{parameters:,}"),
        ("program", f"<code>{text(run.program_hash[:16])}</code>"),
        ("run", _said(about.get("id"))),
        ("command", f"<code>{text(shlex.join(map(str, command)))}</code>" if isinstance(command, list) and command else None),
        ("folder", f"<code>{text(about['working_folder'])}</code>" if about.get("working_folder") else None),
    ]
    others = flat_settings(run.settings) | flat_settings({str(name): value for name, value in about.items() if name not in _OWN})
    return facts([*pairs, *((name, text(value)) for name, value in others.items() if value)])


def environment(run: RunRecord) -> str:
    """Return the machine and versions of the first start, and later changes."""
    first = run.about.get("environment")
    first = {str(name): str(value) for name, value in first.items()} if isinstance(first, Mapping) else {}
    changes = []
    for session in run.log.sessions:
        changed = [f"{name} {value}" for name, value in session.environment.items() if first.get(name) != value]
        if changed and first:
            changes.append(f"<li>after step {session.step:,}: {text(', '.join(changed))}</li>")
    note = (
        f'<p class="note">The run was resumed in another environment, so bits may differ:</p><ul class="note">{"".join(changes[:20])}</ul>'
        if changes
        else ""
    )
    return facts([(name, text(value)) for name, value in first.items()]) + note if first else ""


def timings(run: RunRecord) -> str:
    """Return the duration of the run, of a step and of an epoch."""
    log, durations = run.log, run.log.durations
    starts = [session for session in log.sessions if session.time is not None]
    quartiles = numpy.percentile(durations, [5, 50, 95]).tolist() if len(durations) else None
    rows = float(numpy.median(log.rows[numpy.isfinite(log.rows)])) if numpy.isfinite(log.rows).any() else None
    pairs: list[tuple[str, str | None]] = [
        ("started", time_text(run.about.get("started"))),
        ("total time", seconds_text(log.seconds)),
        ("resumed", f"{len(starts) - 1} times" if len(starts) > 2 else "once" if len(starts) == 2 else None),
    ]
    if quartiles is not None:
        low, middle, high = quartiles
        pairs.append(("per step", seconds_text(middle)))
        pairs.append(("most steps", f"{seconds_text(low)} to {seconds_text(high)}"))
        if rows and middle > 0:
            pairs.append(("rows per second", f"{rows / middle:,.0f}"))
    pairs.append(("per epoch", seconds_text(_epoch_seconds(run))))
    return facts(pairs) if any(value is not None for _, value in pairs) else ""


def checkpoint_table(run: RunRecord, shown: int | None) -> str:
    """Return a table of the checkpoints. `shown` is the step of the checkpoint that makes the predictions."""
    best = None if run.judged_by is None else run.best(run.judged_by)
    rows = []
    for checkpoint in run.checkpoints[-_SHOWN:]:
        notes = ["newest"] if checkpoint is run.checkpoints[-1] else []
        notes += [f"best {text(run.judged_by)}"] if best is not None and best.step == checkpoint.step else []
        notes += ["used for the predictions"] if checkpoint.step == shown else []
        notes = notes if checkpoint.is_whole else ["damaged"]
        rows.append([f"{checkpoint.step:,}", memory_text(checkpoint.bytes), ", ".join(notes)])
    return table(["step", "size", ""], rows, numbers=(0, 1)) if rows else ""


def _epoch_seconds(run: RunRecord) -> float | None:
    """Return the median time between the ends of consecutive epochs without an interruption between them."""
    log, found = run.log, []
    for before, after in zip(log.epochs[:-1], log.epochs[1:], strict=True):
        if after.epoch == before.epoch + 1 and not any(before.step <= session.step < after.step for session in log.sessions):
            found.append(log.epoch_times[after.epoch] - log.epoch_times[before.epoch])
    return float(numpy.median(found)) if found else None


def _elements(shape: object) -> int:
    sizes = [size for size in shape or () if isinstance(size, int)]  # type: ignore[attr-defined]
    return int(numpy.prod(sizes, dtype=object)) if sizes else 1


def _said(value: object) -> str | None:
    return None if value is None or value == "" else text(value)


_ROWS = 60  # rows of a table; longer ones are thinned out


def epoch_table(run: RunRecord) -> str:
    """Return a table of the epochs with all metrics, the best values marked, followed by a table of validations within epochs."""
    if not run.history and not run.validations:
        return '<p class="note">No epoch is finished yet.</p>' if run.steps else '<p class="note">No metrics yet.</p>'
    return _measured(run, run.history, "epoch") + _measured(run, run.validations, "validation")


def best_table(run: RunRecord) -> str:
    """Return a table of the last and best value of each metric, with the epoch and step of the best."""
    rows = []
    for label in _labels([*run.history, *run.validations]):
        best = run.best(label)
        records = [
            record for record in (run.validations if label.startswith("validation ") else ()) or run.history if label in record.values
        ]
        if best is None or not records:
            continue
        last = format_number(records[-1].values[label])
        sign = "↑" if higher_is_better(label) else "↓"
        rows.append([text(label), last, f"<b>{format_number(best.values[label])}</b> {sign}", f"{best.epoch}", f"{best.step:,}"])
    return table(["metric", "last", "best", "in epoch", "at step"], rows, numbers=range(1, 5)) if rows else ""


def _measured(run: RunRecord, records: Sequence[EpochRecord | ValidationRecord], kind: str) -> str:
    if not records:
        return ""
    labels = _labels(records)
    bests = {label: run.best(label) for label in labels}
    rows = []
    shown = _thinned(records, {id(best) for best in bests.values()})
    for record in shown:
        cells = [f"{record.epoch}", f"{record.step:,}"]
        for label in labels:
            value = format_number(record.values[label]) if label in record.values else ""
            cells.append(f'<b class="best">{value}</b>' if record is bests[label] else value)
        rows.append(cells)
    left_out = (
        f'<p class="note">{len(records) - len(shown):,} of {len(records):,} rows are omitted.</p>' if len(shown) < len(records) else ""
    )
    return table(["epoch" if kind == "epoch" else "in epoch", "step", *labels], rows, numbers=range(len(labels) + 2)) + left_out


def _thinned(records: Sequence[EpochRecord | ValidationRecord], kept: set[int]) -> list[EpochRecord | ValidationRecord]:
    """Return the first and last record, those in `kept`, and others at equal intervals."""
    every = max(1, -(-len(records) // _ROWS))
    last = len(records) - 1
    return [record for number, record in enumerate(records) if number % every == 0 or number == last or id(record) in kept]


def _labels(records: Sequence[EpochRecord | ValidationRecord]) -> list[str]:
    return list(dict.fromkeys(label for record in records for label in record.values))

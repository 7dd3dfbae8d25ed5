"""Tables of the metrics of epochs, and of the best values."""

from collections.abc import Sequence

from oarlock.plotting.axis import format_number
from oarlock.report.markup import table, text
from oarlock.training.records import EpochRecord, ValidationRecord
from oarlock.training.run_record import RunRecord, higher_is_better

__all__ = ["best_table", "epoch_table"]

_SHOWN = 60  # rows of a table; longer ones are thinned out


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
    every = max(1, -(-len(records) // _SHOWN))
    last = len(records) - 1
    return [record for number, record in enumerate(records) if number % every == 0 or number == last or id(record) in kept]


def _labels(records: Sequence[EpochRecord | ValidationRecord]) -> list[str]:
    return list(dict.fromkeys(label for record in records for label in record.values))

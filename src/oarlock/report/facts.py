"""The facts about a run: how it is configured, where it ran, how long it took, what it left."""

import shlex
from collections.abc import Mapping

import numpy

from oarlock.ir.program import Program
from oarlock.report.markup import byte_text, facts, seconds_text, table, text, time_text
from oarlock.training.run_comparison import flat_settings
from oarlock.training.run_record import RunRecord

__all__ = ["checkpoint_table", "configuration", "environment", "timings"]

_SHOWN = 50  # checkpoints, of a folder that holds more
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
}  # that have places of their own


def configuration(run: RunRecord, program: Program | None) -> str:
    """The settings of the run: what was trained, on which data, and by which command."""
    about = run.about
    training = {name: value for name, value in about["training"].items() if name != "epochs"}
    parameters = None if program is None else sum(_elements(var.shape) for var in program.parameters())
    command = about.get("command")
    pairs: list[tuple[str, str | None]] = [
        ("epochs", f"{run.epochs:,}"),
        *((name.replace("_", " "), text(value)) for name, value in training.items() if value is not None),
        ("data", None if about.get("data") == "Source" else _said(about.get("data"))),
        ("measures", _said(", ".join(map(str, about["targets"]))) if isinstance(about.get("targets"), list) else None),
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
    """The machine and the versions of the first start, and what was another later."""
    first = run.about.get("environment")
    first = {str(name): str(value) for name, value in first.items()} if isinstance(first, Mapping) else {}
    changes = []
    for session in run.log.sessions:
        changed = [f"{name} {value}" for name, value in session.environment.items() if first.get(name) != value]
        if changed and first:
            changes.append(f"<li>after step {session.step:,}: {text(', '.join(changed))}</li>")
    said = (
        f'<p class="note">It went on elsewhere, where bits may differ:</p><ul class="note">{"".join(changes[:20])}</ul>' if changes else ""
    )
    return facts([(name, text(value)) for name, value in first.items()]) + said if first else ""


def timings(run: RunRecord) -> str:
    """How long it took: in all, a step, an epoch."""
    log, durations = run.log, run.log.durations
    starts = [session for session in log.sessions if session.time is not None]
    quartiles = numpy.percentile(durations, [5, 50, 95]).tolist() if len(durations) else None
    rows = float(numpy.median(log.rows[numpy.isfinite(log.rows)])) if numpy.isfinite(log.rows).any() else None
    pairs: list[tuple[str, str | None]] = [
        ("started", time_text(run.about.get("started"))),
        ("in all", seconds_text(log.seconds)),
        ("went on", f"{len(starts) - 1} times" if len(starts) > 2 else "once" if len(starts) == 2 else None),
    ]
    if quartiles is not None:
        low, middle, high = quartiles
        pairs.append(("a step", seconds_text(middle)))
        pairs.append(("most steps", f"{seconds_text(low)} to {seconds_text(high)}"))
        if rows and middle > 0:
            pairs.append(("rows a second", f"{rows / middle:,.0f}"))
    pairs.append(("an epoch", seconds_text(_epoch_seconds(run))))
    return facts(pairs) if any(value is not None for _, value in pairs) else ""


def checkpoint_table(run: RunRecord, shown: int | None) -> str:
    """The checkpoints that are there; `shown` is the step of the one whose predictions are shown."""
    best = None if run.judged_by is None else run.best(run.judged_by)
    rows = []
    for checkpoint in run.checkpoints[-_SHOWN:]:
        said = ["the newest"] if checkpoint is run.checkpoints[-1] else []
        said += [f"the best {text(run.judged_by)}"] if best is not None and best.step == checkpoint.step else []
        said += ["predicts below"] if checkpoint.step == shown else []
        said = said if checkpoint.is_whole else ["not whole"]
        rows.append([f"{checkpoint.step:,}", byte_text(checkpoint.bytes), ", ".join(said)])
    return table(["step", "size", ""], rows, numbers=(0, 1)) if rows else ""


def _epoch_seconds(run: RunRecord) -> float | None:
    """The median time from the end of an epoch to that of the next, where the run was not stopped between them."""
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

"""`draw_report`: a run as one HTML page."""

import base64
import hashlib
import os
from pathlib import Path

from oarlock.drawing import draw
from oarlock.drawing.style import css_variables
from oarlock.errors import ArgumentError, OarlockError
from oarlock.io.container import read_container
from oarlock.io.files import read_file
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_program
from oarlock.plotting.axis import format_number
from oarlock.plotting.chart import Chart, drawn_in, joined, require_smooth
from oarlock.plotting.palette import Look, legend_of, looks_of
from oarlock.plotting.svg import STYLE, draw_chart
from oarlock.proto.limits import Limits
from oarlock.registry.text import parse_program
from oarlock.report.facts import best_table, checkpoint_table, configuration, environment, epoch_table, timings
from oarlock.report.markup import seconds_text, section, text
from oarlock.report.prediction import Sample, read_sample
from oarlock.report.samples import draw_sample
from oarlock.training.run_plot import SMOOTH, plot_runs
from oarlock.training.run_record import RunRecord

__all__ = ["draw_report"]

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
_SCRIPT = (Path(__file__).parent / "report.js").read_text(encoding="utf-8")
_LARGEST_READ = 256 * 2**20  # bytes of a checkpoint to read for its program, which has source locations
_STATES = {"finished": "finished", "running": "running", "stopped": "stopped; continue with oarlock resume", "failed": "failed"}


def draw_report(run: "RunRecord | str | os.PathLike[str]", *, log: bool = False, smooth: float = SMOOTH, untrusted: bool = False) -> str:
    """Return an HTML report of a run: curves, metrics, predictions, program, configuration, timing, environment, checkpoints.

    The page is self-contained. The run may be finished, running or interrupted; missing parts are omitted. `log` and `smooth` are options
    of `ol.training.plot`. The predictions for the sample rows are computed from a checkpoint. With `untrusted`, no file of the folder may
    be a link. Raises MissingFileError, FormatError, ReadError, LimitError or ArgumentError.
    """
    run = run if isinstance(run, RunRecord) else RunRecord.read(run, untrusted=untrusted)
    require_smooth(smooth)
    program = _read_program(run, untrusted)
    sample = read_sample(run, untrusted=untrusted)
    parts = [
        _head(run, program),
        section("Curves", _curves(run, log, smooth), "curves"),
        section("Metrics", f'<div class="tables">{best_table(run)}{epoch_table(run)}</div>', "measures"),
        section("Predictions", draw_sample(sample) if sample is not None else "", "predictions"),
        section("Program", _program(program), "program"),
        '<div class="columns">',
        section("Configuration", configuration(run, program), "configuration"),
        section("Time", timings(run), "time"),
        section("Environment", environment(run), "environment"),
        "</div>\n",
        section("Checkpoints", checkpoint_table(run, sample.step if isinstance(sample, Sample) else None), "checkpoints"),
    ]
    return _page(run.name, "".join(parts))


def _page(title: str, content: str) -> str:
    """Return the page around its content, with a content security policy: no requests, and no scripts except ours."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)} - run</title>\n<style>{css_variables(':root')}{STYLE}{_STYLE}</style></head>\n"
        f"<body><main>{content}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _head(run: RunRecord, program: Program | None) -> str:
    """Return the header: the name of the run, its state and key numbers."""
    epochs = run.history[-1].epoch if run.history else 0
    tiles = [("epochs", f"{epochs:,} <small>of {run.epochs:,}</small>"), ("steps", f"{run.steps:,}")]
    taken = seconds_text(run.log.seconds)
    tiles += [("time", taken)] if taken is not None else []
    labels = [label for record in (*run.history[-1:], *run.validations[-1:]) for label in record.values]
    validated = [label for label in dict.fromkeys(labels) if label.startswith("validation ")]
    for label in (validated or list(dict.fromkeys(labels)))[:4]:
        best = run.best(label)
        if best is not None:
            tiles.append((f"best {label}", f"{format_number(best.values[label])} <small>epoch {best.epoch}</small>"))
    drawn = "".join(f"<div><dt>{text(name)}</dt><dd>{value}</dd></div>" for name, value in tiles)
    failed = f'<p class="note">{text(run.log.failed)}</p>' if run.state == "failed" else ""
    skipped = f'<p class="note">{run.log.skipped:,} lines of the log cannot be read.</p>' if run.log.skipped else ""
    return (
        f'<header><h1>{text(run.name)}</h1><p class="state {run.state}">{_STATES[run.state]}</p>{failed}'
        f'<dl class="tiles">{drawn}</dl>{skipped}</header>\n'
    )


def _curves(run: RunRecord, log: bool, smooth: float) -> str:
    try:
        charts = plot_runs([run], log=log, smooth=smooth).charts
    except ArgumentError:
        return '<p class="note">No metrics yet.</p>'
    runs, parts = joined(charts)
    looks = looks_of(runs, parts)
    legend = "".join(_legend(look) for look in legend_of(drawn_in(charts))) if len(looks) > 1 else ""
    smoothing = f" Training curves are smoothed by {smooth:g}, and drawn above the unsmoothed values." if smooth else ""
    note = f'<p class="legend">{legend}<span class="note">{smoothing}</span></p>'
    drawn = "".join(f"<figure>{draw_chart(chart, looks)}{_notes(chart)}</figure>" for chart in charts)
    return f'{note}<div class="charts charts-{min(len(charts), 2)}">{drawn}</div>'


def _legend(look: Look) -> str:
    dot = f'<circle class="dot-{look.tone.number}" cx="12" cy="5" r="2.6"/>' if look.is_marked else ""
    line = f'<path class="curve tone-{look.tone.number}" d="M1 5h22"/>{dot}'
    return (
        f'<span><svg class="chart key" viewBox="0 0 24 10" width="24" height="10" aria-hidden="true">{line}</svg> {text(look.name)}</span> '
    )


def _notes(chart: Chart) -> str:
    return f'<figcaption class="note">{"<br>".join(text(note) for note in chart.notes)}</figcaption>' if chart.notes else ""


def _program(program: Program | None) -> str:
    if program is None:
        return '<p class="note">The folder has no readable program.</p>'
    try:
        return draw(program).html
    except OarlockError as error:
        return f'<p class="note">The program cannot be drawn: {text(error.message)}</p>'


def _read_program(run: RunRecord, untrusted: bool) -> Program | None:
    """Return the program of the newest intact checkpoint that is not too large, or the program text in the folder."""
    for checkpoint in reversed(run.checkpoints):
        if checkpoint.is_whole and checkpoint.bytes <= _LARGEST_READ:
            try:
                return read_program(read_container(checkpoint.path / "model.safetensors", untrusted=untrusted)[0])
            except OarlockError:
                continue
    try:
        data = read_file(run.path / "program.txt", largest=Limits().program_bytes, limit="program_bytes", untrusted=untrusted)
        return parse_program(data.decode())
    except (OarlockError, UnicodeDecodeError):
        return None

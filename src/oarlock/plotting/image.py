"""Charts as PNG and PDF with matplotlib, without a display or the global state of pyplot."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

from oarlock.errors import ArgumentError, visible
from oarlock.plotting.chart import Chart, drawn_in, joined
from oarlock.plotting.palette import legend_of, looks_of

__all__ = ["draw_image"]


def draw_image(charts: Sequence[Chart], kind: str) -> bytes:
    """Draw the charts in two columns as a file of this `kind`, "png" or "pdf". Raises ArgumentError if matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        hint = 'pip install "oarlock[plot]", or save as .svg, which needs no package'
        raise ArgumentError(f"writing {kind.upper()} needs matplotlib, which is not installed", hint=hint) from None
    across = min(2, max(1, len(charts)))
    down = -(-len(charts) // across)
    with rc_context({"text.usetex": False, "axes.formatter.useoffset": False, "font.size": 9.0}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing glyphs, which are drawn as boxes
        figure = Figure(figsize=(6.4 * across, 3.6 * down + 0.3), dpi=140, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        every = figure.subplots(down, across, squeeze=False).flatten().tolist()
        for axes, chart in zip(every, charts, strict=False):
            _draw(axes, chart, looks_of(*joined(charts)))
        for axes in every[len(charts) :]:
            axes.set_visible(False)
        _legend(figure, charts)
        written = io.BytesIO()
        figure.savefig(written, format=kind, metadata={"Software": None} if kind == "png" else {"CreationDate": None})
    return written.getvalue()


def _draw(axes: Any, chart: Chart, looks: dict) -> None:
    for curve in chart.behind:
        if curve is not None:
            color = looks[curve.run, curve.part].tone.light
            for xs, ys in curve.pieces(chart.values):
                axes.plot(xs, ys, color=color, alpha=0.25, linewidth=0.8)
    for curve in chart.lines:
        look = looks[curve.run, curve.part]
        for xs, ys in curve.pieces(chart.values):
            mark = "o" if len(xs) == 1 or (look.is_marked and len(curve.steps) <= 60) else None
            axes.plot(
                xs,
                ys,
                color=look.tone.light,
                linewidth=1.5,
                linestyle=_linestyle(look.tone.dashes),
                marker=mark,
                markersize=3.5,
                clip_on=not mark,
            )
        missing = curve.steps[~curve.is_finite]
        if len(missing):
            axes.plot(missing, [0.985] * len(missing), "x", color=look.tone.light, transform=axes.get_xaxis_transform(), markersize=5)
    axes.set_yscale("log" if chart.is_log else "linear")
    axes.set_ylim(chart.values.low, chart.values.high)
    axes.set_xlim(chart.steps.low, chart.steps.high)
    axes.set_title(visible(chart.label)[:80], loc="left", fontsize=10, fontweight="bold", parse_math=False)
    axes.set_xlabel("step", loc="right", color="#59636e")
    axes.grid(axis="y", color="#e4e8ec", linewidth=0.8)
    axes.tick_params(colors="#59636e", length=3)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#c8ced4")
    if chart.notes:
        notes = "\n".join(visible(note)[:110] for note in chart.notes)
        axes.text(0.0, -0.2, notes, transform=axes.transAxes, fontsize=7.5, color="#b45a8c", va="top", parse_math=False)


def _legend(figure: Any, charts: Sequence[Chart]) -> None:
    from matplotlib.lines import Line2D

    looks = legend_of(drawn_in(charts))
    marks = ["o" if look.is_marked else None for look in looks]
    lines = [
        Line2D([], [], color=look.tone.light, linestyle=_linestyle(look.tone.dashes), marker=mark, markersize=3.5, clip_on=not mark)
        for look, mark in zip(looks, marks, strict=True)
    ]
    legend = figure.legend(lines, ["?"] * len(lines), loc="outside upper left", ncols=4, frameon=False)
    for text, look in zip(legend.get_texts(), looks, strict=True):  # set here, because matplotlib omits labels that begin with _
        text.set_parse_math(False)
        text.set_text(visible(look.name)[:60])


def _linestyle(dashes: tuple[int, ...]) -> Any:
    return (0, dashes) if dashes else "-"

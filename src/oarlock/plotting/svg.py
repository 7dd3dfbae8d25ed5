"""Charts as SVG: individually, for a page that includes STYLE, or together as a standalone image."""

import json
from collections.abc import Mapping, Sequence
from html import escape

import numpy

from oarlock.errors import visible
from oarlock.plotting.axis import format_number
from oarlock.plotting.chart import Chart, Curve, drawn_in, joined
from oarlock.plotting.palette import Look, legend_of, looks_of, tone_of

__all__ = ["HEIGHT", "STYLE", "WIDTH", "draw_chart", "draw_legend", "draw_picture"]

WIDTH, HEIGHT = 480, 270
_TOP, _RIGHT, _BOTTOM = 34, 16, 40
_CHARACTER = 6.6  # the width of a character of a tick, in SVG units

_LIGHT = {"page": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#e4e8ec"}
_DARK = {"page": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "grid": "#2a313a"}


def _variables(colors: Mapping[str, str], tones: Sequence[str]) -> str:
    named = {**colors, **{f"tone-{number}": tone for number, tone in enumerate(tones)}}
    return " ".join(f"--chart-{name}: {color};" for name, color in named.items())


_TONES = [tone_of(number) for number in range(6)]
STYLE = f"""
.chart, .chart-page {{ {_variables(_LIGHT, [tone.light for tone in _TONES])} }}
@media screen and (prefers-color-scheme: dark) {{ .chart, .chart-page {{ {_variables(_DARK, [tone.dark for tone in _TONES])} }} }}
.chart text {{ font-family: system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; font-size: 12px;
  fill: var(--chart-faint); font-variant-numeric: tabular-nums; }}
.chart .title {{ font-size: 13px; font-weight: 600; fill: var(--chart-ink); }}
.chart .grid {{ stroke: var(--chart-grid); stroke-width: 1; }}
.chart .curve {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }}
.chart .behind {{ fill: none; stroke-width: 1; opacity: 0.28; stroke-linejoin: round; }}
.chart .missing {{ stroke-width: 1.5; opacity: 0.8; }}
.chart .cursor {{ stroke: var(--chart-faint); stroke-width: 1; stroke-dasharray: 2 3; }}
.chart-page > .page {{ fill: var(--chart-page); }}
""" + "".join(
    f".chart .tone-{number} {{ stroke: var(--chart-tone-{number}); }} .chart .dot-{number} {{ fill: var(--chart-tone-{number}); }}\n"
    for number in range(len(_TONES))
)


def draw_picture(charts: Sequence[Chart]) -> str:
    """Draw a standalone SVG: a legend, then the charts in two columns."""
    looks = looks_of(*joined(charts))
    across = min(2, max(1, len(charts)))
    legend, legend_height = draw_legend(charts, across * WIDTH)
    width, height = across * WIDTH, legend_height + HEIGHT * -(-len(charts) // across)
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart-page" viewBox="0 0 {width} {height}" {size} role="img">',
        f"<title>{_text(', '.join(chart.label for chart in charts))}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" {size} rx="6"/>',
        f'<g class="chart">{legend}</g>',
    ]
    for number, chart in enumerate(charts):
        place = f"translate({number % across * WIDTH} {legend_height + number // across * HEIGHT})"
        parts.append(f'<g class="chart" transform="{place}">{_content(chart, looks)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def draw_chart(chart: Chart, looks: Mapping[tuple[str, str], Look]) -> str:
    """Draw a chart for a page that includes STYLE. Its `data-chart` lets a script show the values at the mouse pointer."""
    curves = [
        {
            "name": visible(looks[curve.run, curve.part].name),
            "tone": looks[curve.run, curve.part].tone.number,
            "steps": [float(step) for step in curve.steps],
            "values": [format_number(float(value)) for value in curve.values],
            "heights": _heights(chart, curve),
        }
        for curve in chart.lines
    ]
    left = _left(chart)
    shape = {"low": chart.steps.low, "high": chart.steps.high, "left": left, "right": WIDTH - _RIGHT, "top": _TOP, "curves": curves}
    data = escape(json.dumps({**shape, "bottom": HEIGHT - _BOTTOM}, separators=(",", ":")))
    label = f'role="img" aria-label="{_text(f"{chart.label} by steps")}"'
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" {label} data-chart="{data}">{_content(chart, looks)}</svg>'


def draw_legend(charts: Sequence[Chart], width: int) -> tuple[str, int]:
    """Draw the legend in rows of this width; return it with its height."""
    parts, x, y = [], 16.0, 26
    for look in legend_of(drawn_in(charts)):
        name = visible(look.name)
        wide = 46 + len(name) * 7
        if x + wide > width - 16 and x > 16:
            x, y = 16.0, y + 20
        parts.append(f'<path class="curve tone-{look.tone.number}"{_dashes(look)} d="M{x:g} {y - 4}h22"/>')
        if look.is_marked:
            parts.append(f'<circle class="dot-{look.tone.number}" cx="{x + 11:g}" cy="{y - 4}" r="2.6"/>')
        parts.append(f'<text x="{x + 28:g}" y="{y}">{escape(name)}</text>')
        x += wide
    return "".join(parts), y + 10


def _content(chart: Chart, looks: Mapping[tuple[str, str], Look]) -> str:
    left, right, top, bottom = _left(chart), WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM
    parts = [f'<text class="title" x="{left}" y="20">{_text(chart.label)}</text>']
    if chart.is_log:
        parts.append(f'<text x="{right}" y="20" text-anchor="end">logarithmic</text>')
    ticks = chart.values.ticks(5)
    for (_, name), y in zip(ticks, _up(chart, [value for value, _ in ticks]), strict=True):
        parts.append(
            f'<path class="grid" d="M{left} {y:.1f}H{right}"/><text x="{left - 7}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
        )
    for x, name in _step_ticks(chart):
        parts.append(f'<path class="grid" d="M{x:.1f} {bottom}v4"/><text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{name}</text>')
    parts.append(f'<path class="grid" d="M{left} {bottom}H{right}"/>')
    parts.append(f'<text x="{right}" y="{bottom + 33}" text-anchor="end">step</text>')
    for curve in chart.behind:
        if curve is not None:
            look = looks[curve.run, curve.part]
            parts.append(f'<path class="behind tone-{look.tone.number}" d="{_path(chart, curve)}"/>')
    for curve in chart.lines:
        look = looks[curve.run, curve.part]
        parts.append(f"<g>{_title(chart, curve, look)}")
        parts.append(f'<path class="curve tone-{look.tone.number}"{_dashes(look)} d="{_path(chart, curve)}"/>')
        for xs, ys in curve.pieces(chart.values):
            if len(xs) == 1 or (look.is_marked and len(curve.steps) <= 60):
                points = zip(_across(chart, xs), _up(chart, ys), strict=True)
                parts += [f'<circle class="dot-{look.tone.number}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>' for x, y in points]
        for x in _across(chart, curve.steps[~curve.is_finite])[:100]:
            parts.append(f'<path class="missing tone-{look.tone.number}" d="M{x - 3:.1f} {top}l6 6m0 -6l-6 6"/>')
        parts.append("</g>")
    return "".join(parts)


def _title(chart: Chart, curve: Curve, look: Look) -> str:
    finite = curve.values[curve.is_finite]
    if not len(finite):
        return ""
    last, least, greatest = (format_number(float(value)) for value in (finite[-1], finite.min(), finite.max()))
    summary = f"last {last}, min {least}, max {greatest}"
    return f"<title>{_text(f'{chart.label}, {look.name}: {summary}')}</title>"


def _left(chart: Chart) -> int:
    return round(18 + _CHARACTER * max((len(name) for _, name in chart.values.ticks(5)), default=1))


def _step_ticks(chart: Chart) -> list[tuple[float, str]]:
    """Return the ticks at whole steps that fit."""
    ticks = [(value, name) for value, name in chart.steps.ticks(6) if "." not in name]
    return list(zip(_across(chart, [value for value, _ in ticks]), [name for _, name in ticks], strict=True))


def _across(chart: Chart, steps: "Sequence[float] | numpy.ndarray") -> list[float]:
    left = _left(chart)
    return (left + chart.steps.place(numpy.asarray(steps, float)) * (WIDTH - _RIGHT - left)).tolist()


def _up(chart: Chart, values: "Sequence[float] | numpy.ndarray") -> list[float]:
    return (HEIGHT - _BOTTOM - chart.values.place(numpy.asarray(values, float)) * (HEIGHT - _BOTTOM - _TOP)).tolist()


def _heights(chart: Chart, curve: Curve) -> list[float | None]:
    """Return the vertical positions of the values of a curve, None for values that cannot be shown."""
    shown = curve.is_finite & chart.values.shows(numpy.where(curve.is_finite, curve.values, 0.0))
    places = _up(chart, numpy.where(shown, curve.values, chart.values.low))
    return [round(place, 1) if is_shown else None for place, is_shown in zip(places, shown, strict=True)]


def _path(chart: Chart, curve: Curve) -> str:
    pieces = []
    for xs, ys in curve.pieces(chart.values):
        points = [f"{x:.1f} {y:.1f}" for x, y in zip(_across(chart, xs), _up(chart, ys), strict=True)]
        pieces.append(f"M{'L'.join(points)}")
    return "".join(pieces)


def _dashes(look: Look) -> str:
    return f' stroke-dasharray="{" ".join(map(str, look.tone.dashes))}"' if look.tone.dashes else ""


def _text(text: str) -> str:
    """Escape untrusted text, truncated to fit into the image."""
    text = visible(text)
    return escape(text if len(text) <= 120 else f"{text[:119]}…")

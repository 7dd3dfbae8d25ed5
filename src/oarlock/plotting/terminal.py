"""Charts as text: braille dots if there are colors or a single curve, otherwise a letter per curve."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from rich.text import Text

from oarlock.errors import visible
from oarlock.plotting.axis import Axis
from oarlock.plotting.chart import Chart, drawn_in, joined
from oarlock.plotting.palette import Look, legend_of, looks_of

__all__ = ["draw_text"]

_NARROWEST = 24
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a braille character, by row and column
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Marks:
    """The characters of axes."""

    side: str
    tick: str
    corner: str
    floor: str
    floor_tick: str


_LINES, _ASCII = _Marks("│", "┤", "└", "─", "┬"), _Marks("|", "+", "+", "-", "+")


@dataclass(frozen=True)
class _Style:
    """The style of curves: their looks by run and part, `dots` or letters, and the characters of axes."""

    looks: dict[tuple[str, str], Look]
    dots: bool
    marks: _Marks

    def number(self, run: str, part: str) -> int:
        """Return the number of a curve, counted from 1."""
        return 1 + list(self.looks).index((run, part))

    def color(self, number: int) -> str:
        return list(self.looks.values())[number - 1].tone.either if self.dots and number else ""

    def letter(self, number: int) -> str:
        return _LETTERS[(number - 1) % len(_LETTERS)] if number else " "


def draw_text(charts: Sequence[Chart], *, width: int = 80, height: int = 12, colors: bool = False, ascii_only: bool = False) -> Text:
    """Draw charts below each other, `width` characters wide, each `height` lines high without its axes."""
    every = looks_of(*joined(charts))
    looks = {key: every[key] for key in every if key in drawn_in(charts)}
    style = _Style(looks, not ascii_only and (colors or len(looks) == 1), _ASCII if ascii_only else _LINES)
    text = _legend(style)
    for chart in charts:
        text.append("\n")
        text.append(_draw(chart, style, max(width, _NARROWEST), max(height, 4)))
    return text


def _legend(style: _Style) -> Text:
    text = Text()
    for number, look in enumerate(legend_of(list(style.looks)) if style.dots else style.looks.values(), 1):
        line = "╌●╌" if look.is_marked else "╌╌╌" if look.tone.dashes else "━━━"
        text.append("   " if number > 1 else "")
        text.append(f"{line if style.dots else style.letter(number)} {visible(look.name)}", style=look.tone.either if style.dots else "")
    text.append("\n")
    return text


def _draw(chart: Chart, style: _Style, width: int, height: int) -> Text:
    steps, values = chart.steps, chart.values
    ticks = values.ticks(max(3, height // 3))
    margin = max((len(name) for _, name in ticks), default=1)
    canvas = _Canvas(max(width - margin - 2, 8), height, style)
    for curve in chart.lines:
        look = style.looks[curve.run, curve.part]
        is_marked = look.is_marked and len(curve.steps) <= canvas.columns // 3
        for xs, ys in curve.pieces(values):
            canvas.draw(steps.place(xs), values.place(ys), style.number(curve.run, curve.part), look.tone.dashes, is_marked)
    names = {height - 1 - min(int(place * height), height - 1): name for place, name in _placed(values, ticks)}
    smooths = any(curve is not None for curve in chart.behind)
    text = Text()
    text.append(visible(chart.label), style="bold")
    text.append(f" by step{', logarithmic' * chart.is_log}{f', smoothed by {chart.smooth:g}' * smooths}\n", style="dim")
    for row in range(height):
        text.append(f"{names.get(row, ''):>{margin}} {style.marks.tick if row in names else style.marks.side}", style="dim")
        for character, number in canvas.row(row):
            text.append(character, style=style.color(number))
        text.append("\n")
    text.append(_floor(steps, margin, canvas.columns, style.marks))
    for note in chart.notes:
        text.append(f"{visible(note)}\n", style="yellow")
    return text


def _floor(axis: Axis, margin: int, columns: int, marks: _Marks) -> Text:
    """Draw the step axis with its ticks."""
    line, names, free = [marks.floor] * columns, [" "] * (columns + margin + 2), 0
    for place, name in _placed(axis, axis.ticks(max(2, columns // 10))):
        column = min(int(place * columns), columns - 1)
        begin = min(max(margin + 2 + column - len(name) // 2, 0), len(names) - len(name))
        if begin >= free and "." not in name:  # steps are whole numbers
            line[column] = marks.floor_tick
            names[begin : begin + len(name)] = name
            free = begin + len(name) + 1
    text = Text()
    text.append(f"{'':{margin}} {marks.corner}{''.join(line)}\n{''.join(names).rstrip()}\n", style="dim")
    return text


def _placed(axis: Axis, ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    places = axis.place(numpy.array([value for value, _ in ticks], float)).tolist()
    return [(place, name) for place, (_, name) in zip(places, ticks, strict=True)]


class _Canvas:
    """A grid of dots, each with the number of the curve that set it last: 8 braille dots per character, or 1 letter."""

    def __init__(self, columns: int, rows: int, style: _Style):
        self.columns, self.style = columns, style
        self.down, self.across = (4, 2) if style.dots else (1, 1)
        self.dots = numpy.zeros((rows * self.down, columns * self.across), int)

    def draw(self, xs: numpy.ndarray, ys: numpy.ndarray, number: int, dashes: Sequence[int], is_marked: bool) -> None:
        """Draw lines through points with coordinates from 0 to 1, where 1 is the top."""
        height, width = self.dots.shape
        columns = (xs * (width - 1)).round().astype(int)
        rows = ((1 - ys) * (height - 1)).round().astype(int)
        drawn = 0
        for left, right, top, bottom in zip(columns[:-1], columns[1:], rows[:-1], rows[1:], strict=True):
            count = max(abs(right - left), abs(bottom - top), 1)
            for part in range(count + 1):
                if not dashes or (drawn + part) % (dashes[0] + dashes[1]) < dashes[0]:
                    self.dots[round(top + (bottom - top) * part / count), round(left + (right - left) * part / count)] = number
            drawn += count
        size = min(2, self.down)
        for column, row in zip(columns, rows, strict=True) if is_marked or len(columns) == 1 else ():
            top, left = min(row, height - size), min(column, width - size)
            self.dots[top : top + size, left : left + size] = number

    def row(self, row: int) -> list[tuple[str, int]]:
        """Return the characters of a row, each with the number of its curve, or 0."""
        found = []
        for column in range(self.columns):
            cell = self.dots[row * self.down : (row + 1) * self.down, column * self.across : (column + 1) * self.across]
            number = int(cell.max())
            braille = sum(_DOTS[y][x] for y, x in zip(*numpy.nonzero(cell), strict=True)) if self.style.dots else 0
            found.append((chr(0x2800 + braille) if braille else self.style.letter(number) if not self.style.dots else " ", number))
        return found

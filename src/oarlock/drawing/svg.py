"""An outline as one SVG picture: the boxes of a page, laid out by ourselves."""

from collections.abc import Sequence

from oarlock.drawing.escaping import escaped
from oarlock.drawing.lines import gutter_width, lane_lines
from oarlock.drawing.outline import Frame, Item, Word
from oarlock.drawing.style import COLORS, HEAD

__all__ = ["FrameBox", "frames_svg", "svg_element"]

_LETTER = 7.23  # the width of a letter of a font of 12 pixels whose letters are all as wide
_INSET = 8  # of a box, from the one around it
_TITLE = 26
_CODE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_LABEL = 22  # letters of a label's column at most
_WORDS = 70


def frames_svg(frames: Sequence[Frame], title: str, depth: int) -> str:
    """The frames one below the other, of which layers more than `depth` deep are closed, below a title."""
    boxes = [FrameBox(frame, depth) for frame in frames]
    width = max([box.width for box in boxes] + [480, len(title) * _LETTER]) + 32
    parts = [f'<text x="16" y="24" font-weight="600" fill="{COLORS["text"][0]}" class="text">{escaped(title)}</text>']
    y = 38.0
    for box in boxes:
        box.paint(parts, 16, y, width - 32)
        y += box.height + 10
    return svg_element(parts, round(width), round(y + 6), title)


def svg_element(parts: Sequence[str], width: int, height: int, title: str) -> str:
    """The drawn parts as an `svg` element, whose colors follow the reader's scheme. Its page is opaque; its style reaches nothing else."""
    dark = "".join(f".oarlock-svg .{kind}{{fill:{color}}}" for kind, (_, color) in COLORS.items())
    dark += "".join(f".oarlock-svg .{kind}-line{{stroke:{color}}}" for kind, (_, color) in COLORS.items())
    size = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="oarlock-svg" {size} viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{_CODE}" font-size="12">',
        f"<title>{escaped(title)}</title>",
        f"<style>@media (prefers-color-scheme:dark){{{dark}}}</style>",
        f'<rect class="page" {size} rx="6" fill="{COLORS["page"][0]}"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class FrameBox:
    """A frame as a box of a width and a height, which is painted anywhere."""

    def __init__(self, frame: Frame, depth: int):
        self.frame = frame
        self.left = gutter_width(frame.lanes) + 4
        self.items = frame.items if frame.level <= depth else []
        self.inner = [
            [FrameBox(inner, depth) for inner in item.frames if inner.kind == "block" or inner.level <= depth] for item in self.items
        ]
        self.title = 0 if frame.kind == "layer" else _TITLE
        self.heights = [HEAD + sum(box.height + 6 for box in boxes) for boxes in self.inner]
        self.height = self.title + sum(self.heights) + 6
        self.label = (min(max((len(item.label) for item in self.items), default=0), _LABEL) + 2) * _LETTER
        wide = [self.left + self._needed(item) for item in self.items]
        wide += [self.left + box.width + _INSET for boxes in self.inner for box in boxes]
        self.width = max([*wide, (len(frame.title) + 16) * _LETTER]) + 4

    def _needed(self, item: Item) -> float:
        words = sum(len(word.text) + 1 for word in _cut(item.words))
        return max(self.label, (len(item.label) + 2) * _LETTER) + (words + len(item.result) + 2) * _LETTER + 8

    def paint(self, parts: list[str], x: float, y: float, width: float) -> None:
        """Append the box with its upper left corner at (x, y)."""
        frame = self.frame
        fill = "outer" if frame.kind == "section" else "page"
        border = f'fill="{COLORS[fill][0]}" stroke="{COLORS["border"][0]}"'
        parts.append(f'<rect class="{fill} border-line" x="{x:g}" y="{y:g}" width="{width:g}" height="{self.height:g}" rx="6" {border}/>')
        if self.title:
            if frame.kind == "section":
                bar = f'x="{x:g}" y="{y:g}" width="4" height="{self.height:g}" rx="2"'
                parts.append(f'<rect class="{frame.role}" {bar} fill="{COLORS[frame.role][0]}"/>')
            parts.append(_text(x + 12, y + 17, frame.title, frame.role if frame.kind == "section" else "text", bold=True))
            parts.append(_text(x + 12 + (len(frame.title) + 2) * _LETTER, y + 17, _count(frame), "note"))
            x, width = (x + 4, width - 4) if frame.kind == "section" else (x, width)
        y += self.title
        for item, boxes, height in zip(self.items, self.inner, self.heights, strict=True):
            self._paint_item(parts, item, x, y, width, height, fill)
            at = y + HEAD
            for box in boxes:
                box.paint(parts, x + self.left, at, width - self.left - _INSET)
                at += box.height + 6
            y += height

    def _paint_item(self, parts: list[str], item: Item, x: float, y: float, width: float, height: float, page: str) -> None:
        lines = lane_lines(item, height).replace(
            'class="dot hollow"', f'class="{page} {self.frame.role}-line" {_dot(page, self.frame.role)}'
        )
        lines = lines.replace('class="dot"', f'class="{self.frame.role}" fill="{COLORS[self.frame.role][0]}"')
        quiet = item.kind in ("feed", "input", "output", "target")
        parts.append(f'<g transform="translate({x:g} {y:g})"><title>{escaped(item.details)}</title>{lines}')
        parts.append(_text(self.left, 16, item.label, "note" if quiet else "text", bold=not quiet))
        at = self.left + max(self.label, (len(item.label) + 1) * _LETTER)
        for word in _cut(item.words):
            kind = word.kind if word.kind in COLORS else {"state": "update", "target": "forward"}.get(word.kind, "note")
            parts.append(_text(at, 16, word.text, kind))
            at += (len(word.text) + 1) * _LETTER
        parts.append(_text(width - 10, 16, item.result, "note", end=True) + "</g>")


def _dot(page: str, role: str) -> str:
    return f'fill="{COLORS[page][0]}" stroke="{COLORS[role][0]}" stroke-width="1.5"'


def _count(frame: Frame) -> str:
    return f"{frame.ops:,} op{'' if frame.ops == 1 else 's'}"


def _text(x: float, y: float, words: str, kind: str, *, bold: bool = False, end: bool = False) -> str:
    if not words:
        return ""
    weight, anchor = ' font-weight="600"' if bold else "", ' text-anchor="end"' if end else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" fill="{COLORS[kind][0]}"{weight}{anchor}>{escaped(words)}</text>'


def _cut(words: Sequence[Word]) -> list[Word]:
    """As many words as there is place for."""
    shown: list[Word] = []
    length = 0
    for word in words:
        length += len(word.text) + 1
        if length > _WORDS:
            return [*shown, Word("...")]
        shown.append(word)
    return shown

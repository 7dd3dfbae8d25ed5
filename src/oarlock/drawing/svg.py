"""An outline as an SVG image, with its own layout."""

from collections.abc import Sequence
from itertools import accumulate

from oarlock.drawing.canvas import LETTER, Canvas
from oarlock.drawing.escaping import escaped
from oarlock.drawing.lines import gutter_width, lane_lines
from oarlock.drawing.outline import Frame, Item, Word, count_ops
from oarlock.drawing.style import HEAD

__all__ = ["FrameBox", "draw_frames"]

_INSET = 8  # from a box to the enclosing one
_TITLE = 26
_GAP = 6  # below a box
_LABEL = 22  # the most characters of the label column
_WORDS = 84  # the most characters of the words of an item


def draw_frames(frames: Sequence[Frame], title: str, depths: Sequence[int]) -> Canvas:
    """Draw frames below each other and below a title. In each, frames nested deeper than its entry of `depths` are closed."""
    boxes = [FrameBox(frame, depth) for frame, depth in zip(frames, depths, strict=True)]
    canvas = Canvas(max([box.width for box in boxes] + [480, len(title) * LETTER]) + 32, title)
    canvas.text(16, 24, title, bold=True)
    y = 38.0
    for box in boxes:
        box.paint(canvas, 16, y, canvas.width - 32)
        y += box.height + 10
    return canvas


class FrameBox:
    """A frame as a box of known width and height. `tops` are the offsets of its items from its own top."""

    def __init__(self, frame: Frame, depth: int):
        self.frame = frame
        self.left = gutter_width(frame.lanes) + 4
        self.items = frame.items if frame.level <= depth else []
        self.inner = [
            [FrameBox(inner, depth) for inner in item.frames if inner.kind == "block" or inner.level <= depth] for item in self.items
        ]
        self.title = 0 if frame.kind == "layer" else _TITLE
        self.heights = [HEAD + sum(box.height + _GAP for box in boxes) for boxes in self.inner]
        self.tops = list(accumulate(self.heights, initial=float(self.title)))[:-1]
        self.height = self.title + sum(self.heights) + (_GAP if self.items else 0)
        self.label = (min(max((len(item.label) for item in self.items), default=0), _LABEL) + 2) * LETTER
        wide = [self.left + self._needed(item) for item in self.items]
        wide += [self.left + box.width + _INSET for boxes in self.inner for box in boxes]
        self.width = max([*wide, (len(frame.title) + 16) * LETTER]) + 4

    def _needed(self, item: Item) -> float:
        words = sum(len(word.text) + 1 for word in _cut(item.words))
        return max(self.label, (len(item.label) + 2) * LETTER) + (words + len(item.result) + 2) * LETTER + _INSET

    def paint(self, canvas: Canvas, x: float, y: float, width: float) -> None:
        """Draw the box with its upper left corner at (x, y)."""
        frame = self.frame
        is_section = frame.kind == "section"
        canvas.box(x, y, width, self.height, "outer" if is_section else "page", outlined="border", round=6)
        if is_section:
            canvas.box(x, y, 4, self.height, frame.role, round=2)
            x, width = x + 4, width - 4
        if self.title:
            canvas.text(x + 10, y + 17, frame.title, frame.role if is_section else "text", code=True, bold=True)
            canvas.text(x + 10 + (len(frame.title) + 2) * LETTER, y + 17, count_ops(frame.ops), "note", code=True)
        for item, boxes, top, height in zip(self.items, self.inner, self.tops, self.heights, strict=True):
            self._paint_item(canvas, item, (x, y + top), width, height)
            at = y + top + HEAD
            for box in boxes:
                box.paint(canvas, x + self.left, at, width - self.left - _INSET)
                at += box.height + _GAP

    def _paint_item(self, canvas: Canvas, item: Item, place: tuple[float, float], width: float, height: float) -> None:
        role = self.frame.role
        fill = "outer" if self.frame.kind == "section" else "page"
        lines = lane_lines(item, height).replace('"ol-dot ol-hollow"', f'"{fill} {role}-line"').replace('"ol-dot"', f'"{role}"')
        canvas.parts.append(f'<g transform="translate({place[0]:g} {place[1]:g})"><title>{escaped(item.details)}</title>{lines}')
        bottom = canvas.bottom
        is_op = item.kind in ("op", "layer")
        canvas.text(self.left, 16, item.label, "text" if is_op else "note", code=True, bold=is_op)
        at = self.left + max(self.label, (len(item.label) + 1) * LETTER)
        for word in _cut(item.words):
            wide = len(word.text) * LETTER
            if word.kind == "target":
                at += 5
                canvas.box(at - 5, 4, wide + 10, 16, fill, outlined="forward", round=8)
            canvas.text(at, 16, word.text, "forward" if word.kind == "target" else word.kind, code=True)
            at += wide + LETTER
        canvas.text(width - 10, 16, item.result, "note", code=True, end=True)
        canvas.parts.append("</g>")
        canvas.bottom = max(bottom, place[1] + height)


def _cut(words: Sequence[Word]) -> list[Word]:
    """Return as many words as fit."""
    shown: list[Word] = []
    length = 0
    for word in words:
        length += len(word.text) + 1
        if length > _WORDS:
            return [*shown, Word("...")]
        shown.append(word)
    return shown

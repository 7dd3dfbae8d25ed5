"""An SVG image of boxes, texts and other shapes."""

from collections.abc import Sequence

from oarlock.drawing.escaping import escaped
from oarlock.drawing.style import css_classes

__all__ = ["LETTER", "Canvas", "draw_rows"]

LETTER = 7.23
"""The width of a character of code, in pixels."""
_SCOPE = ".oarlock-svg"
_FONTS = (
    f"{_SCOPE} text{{font:12px system-ui,Helvetica,Arial,sans-serif}}"
    f'{_SCOPE} .code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}'
    f"{_SCOPE} .bold{{font-weight:600}}{_SCOPE} .end{{text-anchor:end}}"
)


class Canvas:
    """An SVG of a given width, whose height adapts to its contents.

    A kind is the name of a color (`COLORS`). Colors follow the reader's scheme, and the background is opaque. The style does not affect
    the page around the image.
    """

    def __init__(self, width: float, title: str):
        self.width, self.title, self.bottom = width, title, 0.0
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, outlined: str = "", round: float = 0) -> None:
        """Draw a rectangle, with an outline of the kind `outlined`."""
        classes = f"{kind} {outlined}-line" if outlined else kind
        corners = f' rx="{round:g}"' if round else ""
        self.parts.append(f'<rect class="{classes}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corners}/>')
        self.bottom = max(self.bottom, y + height)

    def text(
        self, x: float, y: float, words: str, kind: str = "text", *, code: bool = False, bold: bool = False, end: bool = False
    ) -> None:
        """Draw a line of text that begins at x, or ends there. The text is escaped."""
        if words:
            classes = " ".join([kind, *(["code"] * code), *(["bold"] * bold), *(["end"] * end)])
            self.parts.append(f'<text class="{classes}" x="{x:g}" y="{y:g}">{escaped(words)}</text>')
            self.bottom = max(self.bottom, y + 6)

    def svg(self, *, margin: float = 12) -> str:
        """Return the image, with a margin below its contents."""
        width, height = round(self.width), round(self.bottom + margin)
        size = f'width="{width}" height="{height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="oarlock-svg" {size} viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escaped(self.title)}</title>",
            f"<style>{css_classes(_SCOPE)}{_FONTS}</style>",
            f'<rect class="page" {size} rx="6"/>',
            *self.parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


_HEIGHT = 22


def draw_rows(title: str, rows: Sequence[tuple[str, Sequence[str], int]], more: int) -> Canvas:
    """Draw rows, each a label, the texts of its first elements, and the number of further ones. `more` rows are not drawn."""
    wide = max([2, *(len(text) for _, texts, _ in rows for text in texts)]) * LETTER + 10
    left = 16 + (max([1, *(len(label) for label, _, _ in rows)]) + 1) * LETTER
    longest = max([0, *(len(texts) * (wide + 2) + (80 if others else 0) for _, texts, others in rows)])
    canvas = Canvas(max(left + longest, len(title) * LETTER + 16, 240) + 16, title)
    canvas.text(16, 22, title, bold=True)
    y = 34.0
    for label, texts, others in rows:
        canvas.text(left - LETTER, y + 15, label, "note", code=True, end=True)
        x = left
        for text in texts:
            canvas.box(x, y, wide, _HEIGHT, "inner", outlined="border", round=3)
            canvas.text(x + wide - 5, y + 15, text, code=True, end=True)
            x += wide + 2
        if others:
            canvas.text(x + 4, y + 15, f"+ {others:,}", "note", code=True)
        elif not texts:
            canvas.text(x, y + 15, "empty", "note")
        canvas.bottom = max(canvas.bottom, y + _HEIGHT)
        y += _HEIGHT + 4
    if more:
        canvas.text(16, y + 14, f"and {more:,} more rows", "note")
    return canvas

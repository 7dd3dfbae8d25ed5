"""An SVG image of boxes, texts and other shapes."""

from oarlock.drawing.escaping import escaped
from oarlock.drawing.style import css_classes

__all__ = ["LETTER", "Canvas"]

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

"""Rows of different lengths as an image, with a line of boxes each."""

from collections.abc import Sequence

from oarlock.drawing.canvas import LETTER, Canvas

__all__ = ["draw_rows"]

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

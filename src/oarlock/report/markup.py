"""Building blocks of the page: text, sections, tables, facts, and the formats of times and sizes."""

import math
import time
from collections.abc import Iterable, Sequence

from oarlock.drawing.escaping import escaped
from oarlock.errors import visible

__all__ = ["facts", "seconds_text", "section", "table", "text", "time_text"]

_LONGEST = 400  # characters of a text, which is untrusted


def text(value: object) -> str:
    """Escape a value as text, truncated if it is very long."""
    shown = visible(str(value)[: _LONGEST + 1])
    return escaped(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…")


def section(title: str, content: str, name: str) -> str:
    """Return a section of the page, or nothing if it has no content."""
    return f'<section id="{name}"><h2>{text(title)}</h2>{content}</section>\n' if content else ""


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Return names with values, which are markup; pairs without a value are omitted."""
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{value}</dd></div>" for name, value in pairs if value is not None)
    return f'<dl class="facts">{rows}</dl>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """Return a table of cells, which are markup; the columns `numbers` are right-aligned."""
    right = set(numbers)
    kinds = [' class="number"' if column in right else "" for column in range(len(head))]
    top = "".join(f"<th{kind}>{text(name)}</th>" for name, kind in zip(head, kinds, strict=True))
    body = "".join(f"<tr>{''.join(f'<td{kind}>{cell}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def seconds_text(seconds: float | None) -> str | None:
    """Format a duration as `41 µs`, `3.2 s`, `2 h 05 min`; None if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return None
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size and seconds < 1:
            return f"{seconds / size:.3g} {unit}"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def time_text(seconds: object) -> str | None:
    """Format seconds since 1970 as a UTC date; None for other values."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return None

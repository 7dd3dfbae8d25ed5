"""Tables as HTML, for notebooks and pages."""

from collections.abc import Collection, Iterable, Sequence

from oarlock.drawing.escaping import escaped
from oarlock.drawing.style import css_variables

__all__ = ["table_html"]

_STYLE = css_variables(".oarlock-table") + (
    ".oarlock-table{display:inline-block;max-width:100%;overflow-x:auto;padding:6px 4px;color:var(--text);background:var(--page);"
    "font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;text-align:left}"
    ".oarlock-table table{border-collapse:collapse;margin:0;font:inherit}"
    ".oarlock-table th,.oarlock-table td{padding:2px 12px;text-align:left;white-space:pre;border:0;background:none;color:var(--text)}"
    ".oarlock-table th{color:var(--note);font-weight:600;border-bottom:1px solid var(--border)}"
    ".oarlock-table .number{text-align:right}.oarlock-table tbody tr:nth-child(even) td{background:var(--outer)}"
    ".oarlock-table p{margin:6px 12px 2px;color:var(--note);white-space:pre-line}"
)


def table_html(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), note: str = "") -> str:
    """Return a table of texts below their titles, with a note below. The columns in `numbers` are right-aligned. It needs no script."""

    def line(tag: str, cells: Sequence[str]) -> str:
        aligned = (' class="number"' if column in numbers else "" for column in range(len(cells)))
        return f"<tr>{''.join(f'<{tag}{place}>{escaped(cell)}</{tag}>' for cell, place in zip(cells, aligned, strict=True))}</tr>"

    body = "".join(line("td", row) for row in rows)
    below = f"<p>{escaped(note)}</p>" if note else ""
    return (
        f'<div class="oarlock-table"><style>{_STYLE}</style>'
        f"<table><thead>{line('th', titles)}</thead><tbody>{body}</tbody></table>{below}</div>"
    )

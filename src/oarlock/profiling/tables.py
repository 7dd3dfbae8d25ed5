"""The tables of a profile, for a terminal."""

from collections.abc import Mapping, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from oarlock.drawing.details import memory_text
from oarlock.profiling.totals import WAITS, Total

__all__ = ["table_of_totals", "table_of_waits"]


def table_of_totals(rows: Sequence[Total], title: str, top: int, peak: float | None) -> str:
    """Return a table of the first `top` totals, and the sum of the others, with speeds and fractions of the `peak` speed."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=70)
    for name in ("calls", "time", "share", "multiply-adds", "GFLOP/s", *(["of peak"] if peak else []), "bytes made"):
        table.add_column(name, justify="right", no_wrap=True)
    shown, rest = list(rows[:top]), rows[top:]
    if rest:
        known = None if any(row.multiply_adds is None for row in rest) else sum(row.multiply_adds or 0 for row in rest)
        sums = [sum(getattr(row, name) for row in rest) for name in ("calls", "seconds", "share", "bytes")]
        shown.append(Total(f"{len(rest)} other{'s' * (len(rest) > 1)}", sums[0], sums[1], sums[2], known, sums[3]))
    for row in shown:
        fast = row.gigaflops
        cells = [row.name, f"{row.calls:,.4g}", format_time(row.seconds), f"{row.share * 100:.1f} %"]
        cells += ["?" if row.multiply_adds is None else f"{row.multiply_adds:,.0f}" if row.multiply_adds else ""]
        cells += [f"{fast:,.1f}" if fast else "", *([f"{fast / peak * 100:.0f} %" if fast else ""] if peak else [])]
        table.add_row(*cells, memory_text(row.bytes) if row.bytes else "")
    return _text(table)


def table_of_waits(found: Mapping[str, float]) -> str:
    """Return a table of the time of a step by category."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("time of a step", no_wrap=True)
    for name in ("time", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    whole = sum(found.values())
    for name, seconds in found.items():
        if seconds:
            table.add_row(WAITS[name], format_time(seconds), f"{seconds / whole * 100:.1f} %")
    return _text(table)


def format_time(seconds: float) -> str:
    """Format a duration, such as 1.25 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def _text(table: Table) -> str:
    text = StringIO()
    Console(file=text, width=1000, color_system=None, markup=False, highlight=False, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

"""Unsupported nodes of a model: collected during the import, reported in one error."""

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import UnsupportedError

__all__ = ["Gap", "refuse"]

_MOST_LINES = 24


@dataclass(frozen=True)
class Gap:
    """An unsupported node: its operator, its name and the reason. `unknown` is the value that would have to be known."""

    operator: str
    node: str
    reason: str
    hint: str | None = None
    unknown: str | None = None


def refuse(gaps: Sequence[Gap], name: str, nodes: int) -> UnsupportedError:
    """Return the error that reports all gaps, grouped by operator and reason; its `refusals` are the gaps."""
    groups: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        groups.setdefault((gap.operator, gap.reason), []).append(gap)
    lines = []
    for (operator, reason), found in groups.items():
        names = [gap.node for gap in found[:3] if gap.node]
        more = f", and {len(found) - len(names)} more" if names and len(found) > len(names) else ""
        where = f" ({', '.join(names)}{more})" if names else f" ({len(found)} nodes)" if len(found) > 1 else ""
        lines.append(f"{operator}{where}: {reason}"[:400])
    left = len(lines) - _MOST_LINES
    shown = lines[:_MOST_LINES] + ([f"and {left} more reasons"] if left > 0 else [])
    hints = list(dict.fromkeys(gap.hint for gap in gaps if gap.hint))
    error = UnsupportedError(
        f'"{name}" cannot be imported: {len(gaps)} of its {nodes} nodes are not supported',
        given=shown,
        hint="; ".join(hints[:2]) or None,
    )
    error.refusals = tuple(gaps)  # type: ignore[attr-defined]
    return error

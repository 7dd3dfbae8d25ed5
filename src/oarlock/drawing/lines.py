"""The lines next to an item as SVG, for pages and images."""

from oarlock.drawing.outline import Item
from oarlock.drawing.style import HEAD, LANES, PITCH

__all__ = ["gutter_width", "lane_lines"]

_MIDDLE = HEAD // 2


def gutter_width(lanes: int) -> int:
    """Return the width of the lanes of a frame, in pixels."""
    return lanes * PITCH + 9


def lane_lines(item: Item, height: float | None = None) -> str:
    """Draw the dot and the lines next to an item, as tall as the item: `height` pixels, or 100 % if it is None."""
    lanes = item.lanes
    bottom = "100%" if height is None else f"{height:g}"
    dot = _x(lanes.dot)
    parts = [_line(lane, "", bottom) for lane in lanes.through]
    for lane in lanes.reads:
        parts.append(f'<path class="{_color(lane)}" d="M{_x(lane)} 0C{_x(lane)} {_MIDDLE} {dot} 0 {dot} {_MIDDLE}"/>')
    for lane in lanes.writes:
        if lane == lanes.dot:
            parts.append(_line(lane, f' y1="{_MIDDLE}"', bottom))
        else:
            parts.append(f'<path class="{_color(lane)}" d="M{dot} {_MIDDLE}C{dot} {HEAD} {_x(lane)} {_MIDDLE} {_x(lane)} {HEAD}"/>')
            parts.append(_line(lane, f' y1="{HEAD}"', bottom))
    return "".join(parts) + _dot(item, dot)


def _x(lane: int) -> int:
    return 8 + PITCH * lane


def _color(lane: int) -> str:
    return f"k{lane % len(LANES)}"


def _line(lane: int, top: str, bottom: str) -> str:
    return f'<line class="{_color(lane)}" x1="{_x(lane)}" x2="{_x(lane)}"{top} y2="{bottom}"/>'


def _dot(item: Item, x: int) -> str:
    """Draw a triangle for an input, a diamond for an output, a square for an item with frames, a ring for an op without parameters."""
    if item.kind in ("feed", "input"):
        return f'<path class="ol-dot" d="M{x - 4} {_MIDDLE - 4}h8l-4 8z"/>'
    if item.kind in ("output", "target"):
        return f'<path class="ol-dot" d="M{x} {_MIDDLE - 5}l5 5l-5 5l-5 -5z"/>'
    if item.frames:
        return f'<rect class="ol-dot" x="{x - 4}" y="{_MIDDLE - 4}" width="8" height="8" rx="2"/>'
    if item.weighs:
        return f'<circle class="ol-dot" cx="{x}" cy="{_MIDDLE}" r="4"/>'
    return f'<circle class="ol-dot ol-hollow" cx="{x}" cy="{_MIDDLE}" r="3.5"/>'

"""The lines of lanes beside an item, as SVG: the same in a page and in a picture."""

from oarlock.drawing.outline import Item
from oarlock.drawing.style import HEAD, LANES, PITCH

__all__ = ["gutter_width", "lane_lines"]

_MIDDLE = HEAD / 2


def gutter_width(lanes: int) -> int:
    """How wide the lanes of a frame are, in pixels."""
    return lanes * PITCH + 9


def lane_lines(item: Item, height: float | None = None) -> str:
    """The drawing beside an item: its dot, and lines as tall as the item, whose height is 100 % where `height` is None."""
    lanes = item.lanes
    bottom = "100%" if height is None else f"{height:g}"
    dot = _x(lanes.dot)
    parts = [_line(lane, "0", bottom) for lane in lanes.through]
    parts += [_path(lane, f"M{_x(lane):g} 0C{_x(lane):g} {_MIDDLE:g} {dot:g} 0 {dot:g} {_MIDDLE:g}") for lane in lanes.reads]
    for lane in lanes.writes:
        if lane == lanes.dot:
            parts.append(_line(lane, f"{_MIDDLE:g}", bottom))
        else:
            parts.append(_path(lane, f"M{dot:g} {_MIDDLE:g}C{dot:g} {HEAD:g} {_x(lane):g} {_MIDDLE:g} {_x(lane):g} {HEAD:g}"))
            parts.append(_line(lane, f"{HEAD:g}", bottom))
    return "".join(parts) + _dot(item, dot)


def _x(lane: int) -> float:
    return 8 + PITCH * lane


def _line(lane: int, top: str, bottom: str) -> str:
    x = f"{_x(lane):g}"
    return f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke="{LANES[lane % len(LANES)]}" stroke-width="1.5"/>'


def _path(lane: int, path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{LANES[lane % len(LANES)]}" stroke-width="1.5"/>'


def _dot(item: Item, x: float) -> str:
    y = f"{_MIDDLE:g}"
    if item.kind in ("feed", "input"):
        return f'<path class="dot" d="M{x - 4:g} {_MIDDLE - 4:g}h8l-4 8z"/>'
    if item.kind in ("output", "target"):
        return f'<path class="dot" d="M{x:g} {_MIDDLE - 5:g}l5 5l-5 5l-5 -5z"/>'
    if item.frames:
        return f'<rect class="dot" x="{x - 4:g}" y="{_MIDDLE - 4:g}" width="8" height="8" rx="2"/>'
    return f'<circle class="dot{"" if item.weighs else " hollow"}" cx="{x:g}" cy="{y}" r="{4 if item.weighs else 3.5}"/>'

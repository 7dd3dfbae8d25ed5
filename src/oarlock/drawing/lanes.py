"""Lanes: the lines beside the items of a frame that lead from what defines a value to all that read it.

A value has one lane from its definition to its last reader. An item has its dot where its first result begins, so a chain is one straight
line. The number of lanes is bounded: a value that finds none free is named and not drawn, and all is linear in the number of items.
"""

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["ABOVE", "Lanes", "assign_lanes"]

ABOVE = -1
"""The item that defines a value which comes from outside the frame."""
_Value = TypeVar("_Value", bound=Hashable)
_MOST = 10  # lanes of a frame


@dataclass
class Lanes:
    """The lines beside one item, by the numbers of their lanes: `dot` is where the item's own dot is.

    `through` pass it from top to bottom, `reads` lead from the top to the dot, `writes` from the dot to the bottom.
    """

    dot: int = 0
    through: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)


def assign_lanes(
    reads: Sequence[Sequence[_Value]], defined: Mapping[_Value, int], order: Sequence[Sequence[_Value]]
) -> tuple[list[Lanes], int]:
    """The lanes of each item, and how many there are.

    `reads` has the values that each item reads, `defined` the number of the item that defines each, ABOVE for those from outside, and
    `order` the values that each item defines.
    """
    last: dict[_Value, int] = {}
    for number, values in enumerate(reads):
        for value in values:
            if value in defined:
                last[value] = number
    free = list(range(_MOST))
    lane_of: dict[_Value, int] = {}
    most = 1

    def take(value: _Value, wanted: int | None) -> None:
        nonlocal most
        if not free:
            return
        if wanted is not None and wanted in free:
            free.remove(wanted)
            heapq.heapify(free)
            lane = wanted
        else:
            lane = heapq.heappop(free)
        lane_of[value] = lane
        most = max(most, lane + 1)

    for value in last:  # in the order in which they are first read
        if defined[value] == ABOVE:
            take(value, None)
    rows = []
    for number, values in enumerate(reads):
        read = [value for value in dict.fromkeys(values) if value in lane_of]
        ended = [value for value in read if last[value] == number]
        row = Lanes(reads=[lane_of[value] for value in read])
        kept = {lane for value, lane in lane_of.items() if value not in ended}
        row.through = sorted(kept)
        ends = [lane_of.pop(value) for value in ended]
        for lane in ends:
            heapq.heappush(free, lane)
        wanted = min(ends, default=None)
        for value in order[number]:
            if last.get(value, ABOVE) > number:
                take(value, wanted)
                wanted = None
                if value in lane_of:
                    row.writes.append(lane_of[value])
        row.dot = row.writes[0] if row.writes else min(ends, default=free[0] if free else _MOST)
        most = max(most, row.dot + 1)
        rows.append(row)
    return rows, most

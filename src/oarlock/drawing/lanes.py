"""Lanes: the lines next to the items of a frame, from the definition of a value to its readers.

A value has one lane from its definition to its last reader; values with the same definition and readers share it. The dot of an item is at
the lane of its first result, so a chain is a straight line. The number of lanes is bounded: a value without a free lane is named but not
drawn. The time is linear in the number of items.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["ABOVE", "Lanes", "assign_lanes"]

ABOVE = -1
"""The number of the defining item for values defined outside the frame."""
_Value = TypeVar("_Value")
_MOST = 10  # lanes of a frame
_FAR = 40  # items; values read farther below must leave lanes for others


@dataclass
class Lanes:
    """The lines next to an item, as numbers of lanes; `dot` is the lane of the item's dot.

    `through` pass the item, `reads` lead from the top to the dot, `writes` from the dot to the bottom.
    """

    dot: int = 0
    through: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)


def assign_lanes(reads: Sequence[Sequence[_Value]], defined: Mapping[_Value, int]) -> tuple[list[Lanes], int]:
    """Return the lanes of each item, and their number.

    `reads` are the values that each item reads; `defined` is the number of the earlier item that defines each value, or ABOVE.
    """
    wires = _wires(reads, defined)
    begin: dict[int, list[_Wire]] = {}
    for wire in wires:
        begin.setdefault(wire.first, []).append(wire)
    read: list[list[_Wire]] = [[] for _ in reads]
    for wire in wires:
        for number in wire.readers:
            read[number].append(wire)
    free, used, rows = list(range(_MOST)), 1, []
    drawn: dict[_Wire, int] = {}

    def take(wire: _Wire, wanted: int | None) -> None:
        if not free or (wire.last - wire.first > _FAR and len(free) <= _MOST // 2):
            return
        if wanted in free:
            free.remove(wanted)
            heapq.heapify(free)
            drawn[wire] = wanted
        else:
            drawn[wire] = heapq.heappop(free)

    for wire in begin.get(ABOVE, ()):
        take(wire, None)
    for number in range(len(reads)):
        here = [wire for wire in read[number] if wire in drawn]
        row = Lanes(reads=[drawn[wire] for wire in here])
        ends = [drawn.pop(wire) for wire in here if wire.last == number]
        row.through = sorted(drawn.values())
        for lane in ends:
            heapq.heappush(free, lane)
        wanted = min(ends, default=None)
        for wire in begin.get(number, ()):
            take(wire, wanted)
            if wire in drawn:
                row.writes.append(drawn[wire])
                wanted = None
        row.dot = row.writes[0] if row.writes else min(ends, default=free[0] if free else _MOST)
        used = max(used, row.dot + 1, *(lane + 1 for lane in (*row.through, *row.reads, *row.writes)))
        rows.append(row)
    return rows, used


@dataclass(eq=False)
class _Wire:
    """The line of all values with the same definition and readers."""

    first: int
    readers: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.readers[-1]


def _wires(reads: Sequence[Sequence[_Value]], defined: Mapping[_Value, int]) -> list[_Wire]:
    """Return the wires, in the order in which their values are first read."""
    readers: dict[_Value, list[int]] = {}
    for number, values in enumerate(reads):
        for value in dict.fromkeys(values):
            if value in defined:
                readers.setdefault(value, []).append(number)
    return [_Wire(first, numbers) for first, numbers in dict.fromkeys((defined[value], tuple(found)) for value, found in readers.items())]

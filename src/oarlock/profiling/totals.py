"""Aggregation of recorded times: exclusive times, totals by operator, line or block, and the time of a step by category."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.operation import Role
from oarlock.layer.program_summary import count_multiply_adds
from oarlock.runtime.recording import Slice

__all__ = ["WAITS", "Timed", "Total", "multiply_adds_of", "nest", "result_bytes", "totals", "waits"]

WAITS = {
    "data": "reading data",
    "feed": "checking and converting the feed",
    "arithmetic": "products, convolutions, attention",
    "other": "other operators",
    "python": "Python between operators",
    "checkpoint": "saving checkpoints",
    "loop": "training loop: metrics, log, progress, callbacks",
}
"""The categories of the time of a step."""


class Timed(NamedTuple):
    """A slice, its enclosing blocks and ops, outermost first, and its time in nanoseconds: inclusive and exclusive."""

    slice: Slice
    around: tuple[Slice, ...]
    whole: int
    own: int


@dataclass(frozen=True)
class Total:
    """The total of the slices with the same `name`: an operator, a source line or a block.

    `calls`, `seconds`, `multiply_adds` (None if unknown) and `bytes` (of newly allocated results) are per step. `share` is the fraction of
    the time of a step.
    """

    name: str
    calls: float
    seconds: float
    share: float
    multiply_adds: float | None
    bytes: float

    @property
    def gigaflops(self) -> float | None:
        """Billions of floating-point operations per second, counting a multiply-add as two; None if unknown."""
        return None if not self.multiply_adds or not self.seconds else 2e-9 * self.multiply_adds / self.seconds


def nest(slices: Iterable[Slice]) -> list[Timed]:
    """Return the slices by start time, each with its enclosing slices."""
    found: list[Timed] = []
    by_thread: dict[int, list[Slice]] = defaultdict(list)
    for each in slices:
        by_thread[each.thread].append(each)
    for of_thread in by_thread.values():
        ordered = sorted(of_thread, key=lambda each: (each.begin, -each.end))
        inside = [0] * len(ordered)
        arounds: list[tuple[Slice, ...]] = []
        open_: list[int] = []
        for number, each in enumerate(ordered):
            while open_ and ordered[open_[-1]].end < each.end:
                open_.pop()
            if open_:
                inside[open_[-1]] += _net(each)
            arounds.append(tuple(ordered[outer] for outer in open_))
            open_.append(number)
        found += [Timed(each, around, _net(each), _net(each) - taken) for each, around, taken in zip(ordered, arounds, inside, strict=True)]
    return sorted(found, key=lambda each: each.slice.begin)


def totals(timed: Sequence[Timed], by: str, steps: int, seconds: float) -> list[Total]:
    """Return the totals per step by "operator", "line" or "block", longest first. Raises ArgumentError."""
    name_of = _NAMES.get(by)
    if name_of is None:
        raise ArgumentError(f"totals can be by {', '.join(map(repr, _NAMES))}, not by {by!r:.60}", location=here())
    groups: dict[str, list[Timed]] = defaultdict(list)
    for each in timed:
        if each.slice.part.kind == "op":
            groups[name_of(each)].append(each)
    steps = max(1, steps)
    made = []
    for name, group in groups.items():
        counts = [multiply_adds_of(each.slice) for each in group]
        own = sum(each.own for each in group) * 1e-9 / steps
        known = None if None in counts else sum(count or 0 for count in counts) / steps
        size = sum(each.slice.made for each in group) / steps
        made.append(Total(name, len(group) / steps, own, own / seconds if seconds else 0.0, known, size))
    return sorted(made, key=lambda total: -total.seconds)


def waits(timed: Sequence[Timed], main: int, steps: int, nanoseconds: int) -> dict[str, float]:
    """Return the seconds per step of the main thread by the categories in `WAITS`."""
    sums = dict.fromkeys(WAITS, 0)
    for each in timed:
        kind = each.slice.part.kind
        if each.slice.thread != main or kind == "beside":
            continue
        if kind == "op" and each.slice.part.op is not None and each.slice.part.op.blocks:
            kind = "python"
        elif kind == "op":
            kind = "other" if multiply_adds_of(each.slice) == 0 else "arithmetic"
        elif kind in ("step", "block"):
            kind = "python"
        sums[kind] += each.own
    sums["loop"] = max(0, nanoseconds - sum(sums.values()))
    return {name: taken * 1e-9 / max(1, steps) for name, taken in sums.items()}


def multiply_adds_of(found: Slice) -> int | None:
    """Return the multiply-adds of an op for its recorded shapes, or None if they are unknown or the slice covers several ops."""
    op = found.part.op
    if op is None:
        return None
    seen = {var: shape for var, shape in zip(found.part.vars, found.shapes, strict=False) if shape is not None}
    shapes = {}
    for slot, vars in [*op.inputs.items(), *op.outputs.items()]:
        if len(vars) == 1 and (shape := seen.get(vars[0], vars[0].shape)) is not None:
            shapes[slot] = shape
    count = count_multiply_adds(op.type, shapes)
    return count if isinstance(count, int) else None


def result_bytes(found: Slice) -> int:
    """Return the size of the results of an op in bytes, including shared memory."""
    total = 0
    for var, shape in list(zip(found.part.vars, found.shapes, strict=False))[: found.part.results]:
        size = var.dtype.itemsize if shape is not None else 0
        for axis in shape or ():
            size *= axis
        total += size
    return total


def _net(found: Slice) -> int:
    return max(0, found.end - found.begin - found.lost)


def _operator(timed: Timed) -> str:
    return timed.slice.part.name


def _line(timed: Timed) -> str:
    location = timed.slice.part.location
    return "no source line" if location is None else f"{location.file}:{location.line}  {location.text}".rstrip()


def _block(timed: Timed) -> str:
    op = timed.slice.part.op
    role = (op.role if op is not None else Role.FORWARD).name.lower()
    return "/".join([role, *dict.fromkeys(each.part.name for each in timed.around if each.part.kind == "block")])


_NAMES: dict[str, Callable[[Timed], str]] = {"operator": _operator, "line": _line, "block": _block}

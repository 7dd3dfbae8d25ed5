"""How a line of ops is divided for recomputation, and which of its values are kept."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from math import prod

from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate, names_in
from oarlock.ir.var import Var

__all__ = ["divide", "divide_at", "recomputed_in"]

_SYMBOL = 32  # what a size is taken for that only the run tells


def divide_at(ops: Sequence[Op], checkpoints: AbstractSet[Var]) -> dict[Op, int]:
    """The number of the segment of each op: one ends with each op that computes some of `checkpoints`."""
    segments: dict[Op, int] = {}
    number = 0
    for op in ops:
        segments[op] = number
        number += any(var in checkpoints for var in op.writes)
    return segments


def divide(ops: Sequence[Op], wanted: AbstractSet[Var], count: int | None) -> dict[Op, int]:
    """The same for `count` segments or, where that is None, for as many as are estimated to need the least memory.

    `wanted` are the values that gradients read. Segments have about equally many bytes of them, and end where few bytes go on to
    later ops (Chen, Xu, Zhang and Guestrin, 2016: what is kept grows with the number of segments, what is computed again at one
    time shrinks). A size that is a symbol counts as 32.
    """
    before = [0]  # the bytes that gradients read of what the ops up to each place compute
    for op in ops:
        before.append(before[-1] + sum(_bytes(var) for var in op.writes if var in wanted))
    crossing = _crossing(ops)
    counts = [count] if count is not None else range(1, min(len(ops), 64) + 1)
    cuts = min((_cuts(before, crossing, count) for count in counts), key=lambda cuts: _estimate(before, crossing, cuts))
    return {op: sum(cut <= number for cut in cuts) for number, op in enumerate(ops)}


def _cuts(before: Sequence[int], crossing: Sequence[int], count: int) -> list[int]:
    """Where `count` segments are cut: near the places that divide the bytes evenly, that where the least goes on."""
    cuts: list[int] = []
    for number in range(1, count):
        aim, reach = before[-1] * number / count, before[-1] / (2 * count)
        places = [place for place in range(1, len(before) - 1) if place not in cuts]
        near = [place for place in places if abs(before[place] - aim) <= reach]
        if near:
            cuts.append(min(near, key=lambda place: (crossing[place], abs(before[place] - aim), place)))
        elif places:
            cuts.append(min(places, key=lambda place: (abs(before[place] - aim), before[place] < aim, place)))
    return sorted(cuts)


def _estimate(before: Sequence[int], crossing: Sequence[int], cuts: Sequence[int]) -> int:
    """The most bytes at one time: what goes on from segment to segment, and all of the largest one."""
    edges = [0, *cuts, len(before) - 1]
    return sum(crossing[cut] for cut in cuts) + max(before[stop] - before[start] for start, stop in pairwise(edges))


def _crossing(ops: Sequence[Op]) -> list[int]:
    """For each place between ops the bytes of what is computed before and read after it."""
    defined = {var: number for number, op in enumerate(ops) for var in op.writes}
    last = {var: number for number, op in enumerate(ops) for var in op.reads if var in defined}
    changes = [0] * (len(ops) + 2)
    for var, number in last.items():
        changes[defined[var] + 1] += _bytes(var)
        changes[number + 1] -= _bytes(var)
    crossing = [0]
    for change in changes[1 : len(ops) + 1]:
        crossing.append(crossing[-1] + change)
    return crossing


def _bytes(var: Var) -> int:
    names = {name: _SYMBOL for size in var.shape or () for name in names_in(size)}
    return var.dtype.itemsize * prod(max(evaluate(size, names) or 0, 0) for size in var.shape or ())


def recomputed_in(segments: Mapping[Op, int], readers: Mapping[Var, Collection[Op]], kept: AbstractSet[Var]) -> set[Var]:
    """The values that are computed again: of the ops that have a segment, those that no forward op of another one reads.

    `readers` are the ops that are no gradients; `kept` is kept in any case.
    """
    return {
        var
        for op, segment in segments.items()
        for var in op.writes
        if var not in kept and all(segments.get(reader) == segment for reader in readers.get(var, ()))
    }

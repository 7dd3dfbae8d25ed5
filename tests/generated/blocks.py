"""Filling blocks: what loops and branches share. `loops` and `branches` add their constructs to the table here."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import oarlock as ol
from generated.maybe_equal import MAYBE_EQUAL
from generated.statements import STATEMENTS, forbidden
from generated.writing import LIMIT, Writing, is_cut_in_front
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import Shape, Size, names_in
from oarlock.ir.traversal import free_vars, inner_blocks

__all__ = ["CONSTRUCTS", "alike", "choose_outputs", "construct", "fill", "initials", "shadow", "successors", "write_statements"]

CONSTRUCTS: list[tuple[int, Callable[[Writing], None]]] = []
MAX_DEPTH = 3


def construct(weight: int) -> Callable:
    def add(function: Callable[[Writing], None]) -> Callable[[Writing], None]:
        CONSTRUCTS.append((weight, function))
        return function

    return add


def write_statements(w: Writing, count: int, *, nested: int) -> None:
    """Write statements into the open block; with `nested` percent of chance each, falling, one that has blocks."""
    blocks = 0
    for _ in range(count):
        if w.depth < MAX_DEPTH and w.choices.chance(nested // (2 * blocks + 1)):
            blocks += 1
            w.choices.weighed(CONSTRUCTS)(w)
        else:
            w.choices.weighed([*STATEMENTS, *MAYBE_EQUAL] if w.maybe_equal else STATEMENTS)(w)


def fill(w: Writing) -> None:
    """Write statements into the open block of a construct; one that would raise, at times, where that never runs."""
    if not w.runs and w.choices.chance(50):
        forbidden(w)
    write_statements(w, 1 + w.choices.below(4), nested=(0, 30, 20, 0)[w.depth])


def successor(w: Writing, before: ol.Var) -> ol.Var:
    """The next value of one that is carried: something of its type, mostly one that depends on it."""
    if w.choices.chance(15):
        return w.value(lambda var: var.shape == before.shape, before)
    other = w.value(lambda var: before.shape[len(before.shape) - len(var.shape) :] == var.shape, before)
    after = ol.op.add(ol.op.multiply(before, w.number(0.6)), other) if w.choices.chance(50) else ol.op.multiply(before, other)
    return w.keep(ol.op.tanh(after), 1.0)


def successors(w: Writing, before: Sequence[ol.Var]) -> list[ol.Var]:
    """The next values of those that are carried; at times, one goes on as the next of its type, and the last as the first."""
    following = [successor(w, var) for var in before]
    alike = [number for number, var in enumerate(before) if var.shape == before[0].shape]
    if len(alike) > 1 and w.choices.chance(50):
        w.features.add("memories in turn")
        for number, other in pairwise(alike):
            changed = w.choices.chance(40)
            following[number] = ol.op.multiply(before[other], w.number(0.8)) if changed else before[other]
        if w.choices.chance(40):
            following[alike[-1]] = before[alike[0]]
    return following


def initials(w: Writing, vars: Sequence[ol.Var]) -> list[ol.Var]:
    """The initial values of memories: values in reach; or constants like them."""
    if w.choices.chance(65):
        return list(vars)
    return [w.keep(ol.op.full_like(var, value=0.4, dtype="float64"), LIMIT) for var in vars]


def choose_outputs(w: Writing, block: Block, rows: Size | None = None) -> list[ol.Var]:
    """One to three values that every trip returns: mostly of this block, at times from around it, or the same twice.

    Each has one size in all trips; or, where a trip has `rows` of a ragged loop, has those in front.
    """
    around = {name for outer in block.enclosing() if outer is not block for var in outer.vars.values() for name in _names(var.shape or ())}

    def fits(var: ol.Var) -> bool:
        return _names(var.shape) <= around and (rows is None or is_cut_in_front(var.shape, rows))

    own = w.visible(lambda var: var.block is block and fits(var))
    ends = [var for var in own if var in w.ends]
    own = ends if ends and w.choices.chance(50) else own
    chosen = []
    for _ in range(1 + w.choices.below(3)):
        outer = not own or w.choices.chance(10)
        var = w.find_value(fits) if outer else w.choices.pick(own)
        if var is not None:
            chosen.append(var)
            if var.block is not block:
                w.features.add("outer variable returned")
    return chosen


def _names(shape: Shape) -> set[str]:
    return {name for size in shape for name in names_in(size)}


def alike(w: Writing, wanted: Sequence[ol.Var]) -> list[ol.Var]:
    """A value of the type of each of `wanted`, of the open block where it has one."""
    found = []
    for like in wanted:
        own = w.find_value(lambda var, like=like: var.shape == like.shape and var.block is current_block())
        found.append(w.value(lambda var, like=like: var.shape == like.shape, like) if own is None or w.choices.chance(10) else own)
    return found


def shadow(w: Writing, block: Block) -> None:
    """Call a variable of a closed block what one around it is called, at times, where nothing inside means that one."""
    if not w.choices.chance(20):
        return
    inside = inner_blocks(block)
    meant = {var.name.partition(".whole")[0] for inner in inside for var in free_vars(inner)}  # what `rnn.whole` stands for is read, too
    outer = [name for around in block.enclosing() if around is not block for name in around.vars]
    free = [name for name in dict.fromkeys(outer) if name not in meant and all(name not in inner.vars for inner in inside)]
    if free and block.vars:
        var = w.choices.pick(list(block.vars.values()))
        block.rename(var, w.choices.pick(free))
        w.features.add("shadowed")

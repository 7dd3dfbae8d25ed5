"""Overlapped exchanges: a worker computes on while tensors are exchanged."""

import math

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk_ops
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.collective import is_collective

__all__ = ["overlap_exchanges"]


def overlap_exchanges(program: Program, catalogue: Catalogue) -> int:
    """Begin each `all_reduce` of the main block as soon as its tensors are there, and end it where a result is read; return how many.

    Before                                     After
        w@GRAD = all_reduce(w@GRAD.part)           exchange = all_reduce_start(w@GRAD.part)
        v@GRAD.part = linear_dw(x, dy)             v@GRAD.part = linear_dw(x, dy)
        w@NEXT = sgd(w, w@GRAD, rate)              w@GRAD = all_reduce_done(exchange, w@GRAD.part)
                                                   w@NEXT = sgd(w, w@GRAD, rate)

    Legal for tensors whose sizes are numbers: workers exchange in the order that the program has, which is the same on all of them, and
    get the same bits. What is exchanged lies in memory of its own until then. Does not apply where the next op reads a result.
    """
    if any(catalogue.find(type) is not standard.find(type) for type in ("all_reduce", "all_reduce_start", "all_reduce_done")):
        return 0  # its operators are someone else's
    block = program.main
    apart = [op for op in block.ops if op.type == "all_reduce" and _elements(op)]
    for op in apart:
        _compute_first(op, catalogue)
    apart = [op for op in apart if _first_reader(block, op) > block.ops.index(op) + 1]
    for op in apart:
        _split(op)
    if apart:
        program.changed()
    return len(apart)


def _compute_first(op: Op, catalogue: Catalogue) -> None:
    """Move what an exchange needs, and then the exchange, before all else that stands between it and the one before it."""
    ops = op.block.ops
    stop = ops.index(op)
    start = next((number for number in range(stop, 0, -1) if is_collective(ops[number - 1], catalogue)), 0)
    needed, wanted = {op}, set(op.reads)
    for other in reversed(ops[start:stop]):
        if not wanted.isdisjoint(other.writes):
            needed.add(other)
            wanted.update(other.reads)
    first, later = ([each for each in ops[start : stop + 1] if (each in needed) is here] for here in (True, False))
    if not any(catalogue.get(each.type).effects for each in walk_ops(later)):  # which keep their order
        ops[start : stop + 1] = [*first, *later]


def _elements(op: Op) -> int:
    """How many elements an op exchanges; 0 where that is not known."""
    shapes = [("?",) if var.shape is None else var.shape for var in op.reads]
    if not all(isinstance(item, int) for shape in shapes for item in shape):
        return 0
    return sum(math.prod(shape) for shape in shapes)  # type: ignore[arg-type]


def _first_reader(block: Block, op: Op) -> int:
    """Where the first op stands that reads a result of `op`, or commits one; behind all others, where none does."""
    results = set(op.writes)
    numbers = (number for number, other in enumerate(block.ops) if other.is_commit or not results.isdisjoint(other.reads))
    return next(numbers, len(block.ops))


def _split(op: Op) -> None:
    block = op.block
    exchange = declare(op.writes[0], (_elements(op),), "EXCHANGE")
    told = {"role": op.role, "location": op.location}
    start = Op(block, "all_reduce_start", op.inputs, {"exchange": (exchange,)}, op.attributes, **told)
    done = Op(block, "all_reduce_done", {"exchange": (exchange,), "likes": op.inputs["xs"]}, op.outputs, {}, **told)
    for made in (start, done):
        for var in made.writes:
            var.op = made
    block.ops.insert(_first_reader(block, op), done)
    block.ops[block.ops.index(op)] = start

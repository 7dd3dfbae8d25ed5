"""Batch epilogue of a loop: what no step reads again is computed by one op on the stacks, after the loop, not by one in each step."""

from collections.abc import Iterable, Mapping
from math import prod

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Layout
from oarlock.passes.loops import StackedNames, attributes_outside, copy_op, loops_in, outside_shape, sums_rows
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import Catalogue

__all__ = ["batch_epilogue"]


def batch_epilogue(program: Program, catalogue: Catalogue) -> int:
    """Sink what may be sunk behind the loops of `program`; return how many ops that were.

    Before                                               After
        dw = recurrent(xs, dhs, body=                        dzs = recurrent(dhs, body=
            dz = ...                                              dz = ... -> dz)
            s = linear_dw(x, dz) -> sum of s)                dw = linear_dw(xs, dzs)

    Legal for what is only summed over the steps, where the operator sums over leading indices, and for what is only
    stacked, where it computes each leading index alone. Sums are rounded in another order: values change in their last bits.
    Costs the stacks of what the op reads. Does not apply to values whose sizes differ from step to step.

    A view of a value, such as a part of a `split`, need not be returned where the value can be: the view is taken of the stack, and the
    step, where it reads the view too, takes its own. So is what a `concat` that is returned consists of.

    Before                                               After
        ps, qs = recurrent(xs, body=                         zs = recurrent(xs, body=
            p, q = split(z)                                      p, q = split(z)
            y = add(p, q) -> p, q)                               y = add(p, q) -> z)
                                                             ps, qs = split(zs)

    That costs the memory of the value for that of what was stacked of it, up to four times as much, and saves a copy in each step:
    a list of views would have kept the value alive as well.

    A value that a gradient computes again (`recompute`) is not stacked: it would be kept after all.
    """
    count, names = 0, StackedNames()
    for op in loops_in(program.main):
        count += _sink_from(op, names.of(op.block), catalogue)
    return count


def _sink_from(loop: Op, names: set[str], catalogue: Catalogue) -> int:
    layout = Layout.of(loop)
    varying = set(layout.body.vars.values())
    ragged = "splits" in loop.inputs
    position = loop.block.ops.index(loop) + 1
    count = 0
    for op in reversed(layout.body.ops):
        operator = catalogue.get(op.type)
        summed = _is_only_in(layout.summed, layout.stacked, op, layout)
        if op.type == "sum" and summed:
            _split_sum(op, layout, position)
            count += 1
        elif summed and sums_rows(operator, op, varying, ragged=ragged):
            count += _move(op, layout, position, names, layout.summed, op.attributes)
        elif (attributes := attributes_outside(operator, op, varying, ragged=ragged)) is not None:
            if _is_only_in(layout.stacked, layout.summed, op, layout):
                count += _move(op, layout, position, names, layout.stacked, attributes)
            elif operator.aliases and _keeps_most(op, layout):
                count += _move(op, layout, position, names, layout.stacked, attributes, stays=True)
            elif op.type == "concat":
                count += _take_parts(op, layout, position, names, attributes)
    layout.write()
    return count


def _is_only_in(pairs: list[tuple[Var, Var]], others: list[tuple[Var, Var]], op: Op, layout: Layout) -> bool:
    """Whether what `op` defines is returned in `pairs`, not in `others`, and is read by no op of the body nor by the next step."""
    returned = {inner for inner, _ in pairs}
    if not returned.issuperset(op.writes):
        return False
    read = {inner for inner, _ in others} | {each.following for each in layout.carried}
    return read.isdisjoint(op.writes) and not any(is_among(var, op.writes) for other in layout.body.ops for var in other.reads)


def _split_sum(op: Op, layout: Layout, position: int) -> None:
    """The sum over the steps of a sum of terms: the sum of each term over the steps, added up after the loop."""
    (result,) = op.writes
    block = layout.op.block
    for pair in [pair for pair in layout.summed if pair[0] is result]:
        terms = [
            block.new_var(block.program.unique(f"{pair[1].name.partition('@')[0]}@TERM"), result.dtype, result.shape)
            for _ in op.inputs["xs"]
        ]
        layout.summed = [each for each in layout.summed if each is not pair]
        layout.summed += zip(op.inputs["xs"], terms, strict=True)
        for term in terms:
            term.op = layout.op
        after = Op(block, "sum", {"xs": tuple(terms)}, {"y": (pair[1],)}, {}, role=op.role, location=op.location)
        block.ops.insert(position, after)
        pair[1].op = after
    layout.body.ops.remove(op)


def _keeps_most(op: Op, layout: Layout) -> bool:
    """Whether at least a quarter of what `op` gives views of is returned by it."""
    returned = {inner for inner, _ in layout.stacked}
    return bool(returned.intersection(op.writes)) and _is_within(
        _counts(op.reads), _counts([var for var in op.writes if var in returned]), 4
    )


def _counts(vars: Iterable[Var]) -> dict[tuple[str, ...], int]:
    """How many elements variables have together: the factor of each product of symbols."""
    counts: dict[tuple[str, ...], int] = {}
    for var in vars:
        symbols = tuple(sorted(size for size in var.shape or () if isinstance(size, str)))
        counts[symbols] = counts.get(symbols, 0) + prod(size for size in var.shape or () if isinstance(size, int))
    return counts


def _is_within(one: Mapping[tuple[str, ...], int], other: Mapping[tuple[str, ...], int], times: int) -> bool:
    return all(symbols in other and count <= times * other[symbols] for symbols, count in one.items())


def _take_parts(op: Op, layout: Layout, position: int, names: set[str], attributes: Mapping[str, object]) -> int:
    """Return no part of a `concat` whose stack is returned, but take the part of that; return how many parts those were.

    0 where there is no such stack, as of trips with different sizes, or nothing says how much of it a part is.
    """
    whole = next((outer for inner, outer in layout.stacked if inner is op.writes[0]), None)
    if whole is None or outside_shape(layout, op.writes[0], names) is None:
        return 0
    axis = attributes["axis"]
    sizes = [var.shape[op.attributes["axis"]] for var in op.reads if var.shape is not None]  # type: ignore[index]
    if not all(isinstance(size, int) for size in sizes):
        return 0
    block, start, kept, taken = layout.op.block, 0, list(layout.stacked), 0
    for part, size in zip(op.inputs["xs"], sizes, strict=True):
        for pair in [pair for pair in kept if pair[0] is part]:
            outputs = {"y": (pair[1],)}
            where = {"axis": axis, "start": start, "stop": start + size}  # type: ignore[operator]
            slice_ = Op(block, "slice", {"x": (whole,)}, outputs, where, role=op.role, location=op.location)
            block.ops.insert(position, slice_)
            pair[1].op = slice_
            kept = [each for each in kept if each is not pair]
            taken += 1
        start += size  # type: ignore[operator]
    layout.stacked = kept
    return taken


def _recomputed(layout: Layout) -> set[Var]:
    """The values of a loop that follow, in each trip, from what is behind a barrier alone: those that are computed again."""
    found: set[Var] = set()
    if not any(op.type == "optimization_barrier" for op in layout.body.ops):
        return found
    for op in layout.body.ops:
        inside = [var for var in op.reads if var.block is layout.body and (var.op is None or var.op.reads)]  # constants are neither
        if op.type == "optimization_barrier" or (inside and found.issuperset(inside)):
            found.update(op.writes)
    return found


def _move(
    op: Op,
    layout: Layout,
    position: int,
    names: set[str],
    pairs: list[tuple[Var, Var]],
    attributes: Mapping[str, object],
    *,
    stays: bool = False,
) -> int:
    """Take `op` out of the body, unless it stays there, and put it behind the loop; 0 where what it reads has no stack.

    What it gave is not returned any more in `pairs`.
    """
    block = layout.op.block
    inside = [var for var in dict.fromkeys(op.reads) if var.block is layout.body]
    # What is not among these means the same outside.
    whole = {inner: outer for inner, outer in (*layout.steps, *layout.stacked) if is_among(inner, inside)}
    shapes = {var: outside_shape(layout, var, names) for var in (*inside, *(op.writes if stays else ()))}
    if None in shapes.values() or not _recomputed(layout).isdisjoint(var for var in inside if var not in whole):
        return 0
    results = {var: [outer for inner, outer in pairs if inner is var] for var in op.writes}
    if any(len(outer) > 1 or not (outer or stays) for outer in results.values()):
        return 0
    for var in inside:
        if var not in whole:
            whole[var] = declare(var, shapes[var], "STACK", block)
            whole[var].op = layout.op
            layout.stacked.append((var, whole[var]))
    outputs = {
        slot: tuple(results[var][0] if results[var] else declare(var, shapes[var], "STACK", block) for var in vars)
        for slot, vars in op.outputs.items()
    }
    pairs[:] = [pair for pair in pairs if not is_among(pair[0], op.writes)]
    copy_op(op, block, position, whole, outputs, attributes)
    if not stays:
        layout.body.ops.remove(op)
    return 1

"""Transposes that undo one another across the ops between them, which compute each element by itself: none of them is done.

Before                                                       After
    x = transpose(linear, axes=(0, 2, 1, 3))                     y = add(multiply(linear, cos'), multiply(concat(...), sin'))
    y = add(multiply(x, cos), multiply(concat(...), sin))        z = transpose(y, axes=(0, 1, 2, 3))
    z = transpose(y, axes=(0, 2, 1, 3))

Modules move the heads of attention in front of the rows, turn them by their places or repeat them, and attention moves them back. What
lies between is computed in the order before, by the same ops, where nothing else reads it. `canonicalize` drops the transpose that is left.
"""

from collections import defaultdict
from collections.abc import Iterable

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, is_same, multiply
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, are_same
from oarlock.passes.rewriter import declare, is_elementwise, new_op
from oarlock.registry.catalogue import standard

__all__ = ["cancel_transposes"]

Axes = tuple[int, ...]

_MOST_VALUES = 64  # between two transposes: modules have a dozen there, and a long chain of ops would exhaust Python's stack


def cancel_transposes(program: Program, start: int, outputs: Iterable[object]) -> None:
    """Cancel transposes among the ops of the main block from `start` on. `outputs` are read too."""
    readers: dict[Var, list[Op | None]] = defaultdict(list)  # None: a block, a target, a caller
    for op in walk(program.main):
        for var in op.reads:
            readers[var].append(op)
    for var in (*(var for block in program.blocks for var in block.outputs), *program.targets.values(), *outputs):
        if isinstance(var, Var):
            readers[var].append(None)
    for op in program.main.ops[start : program.main.tail_start]:
        if op.type == "transpose" and _axes(op) != tuple(range(len(_axes(op)))):
            _Region(program, readers).cancel(op)


class _Region:
    """The values before a transpose that may be computed in the order behind it, and the order of each."""

    def __init__(self, program: Program, readers: dict[Var, list[Op | None]]):
        self.main = program.main
        self.readers = readers
        self.orders: dict[Var, Axes] = {}  # of the axes that a value has now: dimension i will be what dimension order[i] is
        self.undone: dict[tuple[Op, Var], Var] = {}  # what ops read instead: what a transpose was made of
        self.turned: dict[tuple[Op, Var], Axes] = {}  # what ops read in another order, which costs nothing

    def cancel(self, transpose: Op) -> None:
        """Compute what `transpose` reads in the order behind it, where that undoes another one and nothing else reads it."""
        (x,) = transpose.inputs["x"]
        if not self._add(x, _axes(transpose)) or not self.undone:
            return
        if any(read in self.orders for _, read in (*self.undone, *self.turned)):
            return  # one value in two orders
        if all(self._may_read(reader, order) for var, order in self.orders.items() for reader in self.readers[var]):
            self._rewrite()

    def _may_read(self, reader: Op | None, order: Axes) -> bool:
        """Whether `reader` of a value is of the region, or does to it what the order does."""
        if reader is None or reader.block is not self.main:
            return False
        return reader.writes[0] in self.orders or (reader.type == "transpose" and _axes(reader) == order)

    def _add(self, x: Var, order: Axes) -> bool:
        """Whether `x` may be computed in that order, and all that it is made of."""
        if x in self.orders:
            return self.orders[x] == order
        op = x.op
        if op is None or op.block is not self.main or len(op.writes) != 1 or x.shape is None or op.type == "transpose":
            return False
        if len(self.orders) == _MOST_VALUES:
            return False
        self.orders[x] = order
        if op.type in ("slice", "concat"):
            return all(self._operand(op, read, order) for read in op.reads)
        if op.type == "broadcast_to":
            (source,) = op.inputs["x"]
            told = [read for read in op.reads if read is not source]
            return not told and source.ndim == x.ndim and _has_shape(op, x) and self._operand(op, source, order)
        if op.type == "reshape":
            (source,) = op.inputs["x"]
            before = None if source.shape is None else _order_before(source.shape, x.shape, order)
            return before is not None and are_same(op.reads, (source,)) and _has_shape(op, x) and self._operand(op, source, before)
        if not is_elementwise(standard.get(op.type), op):
            return False
        last = order[-1] == len(order) - 1
        return all(_is_number(read) or (read.ndim == 1 and last) or self._operand(op, read, order) for read in op.reads)

    def _operand(self, op: Op, read: Var, order: Axes) -> bool:
        """Whether `op` may read `read` in that order."""
        if read.shape is None or len(read.shape) != len(order):
            return False
        source, moves = read, order
        while source.op is not None and source.op.type == "transpose":
            moves = _composed(_axes(source.op), moves)
            (source,) = source.op.inputs["x"]
            if source.stop_gradient != read.stop_gradient:
                break
            if moves == tuple(range(len(order))):
                self.undone[op, read] = source
                return True
        before = dict(self.orders), dict(self.undone), dict(self.turned)
        if self._add(read, order):
            return True
        self.orders, self.undone, self.turned = before
        moved = [axis for axis in order if read.shape[axis] != 1]
        if moved != sorted(moved):
            return False
        self.turned[op, read] = order  # only axes of one place move: the elements stay where they are
        return True

    def _rewrite(self) -> None:
        operators = {var.op: order for var, order in self.orders.items()}
        ops: list[Op] = []
        for op in self.main.ops:
            if op in operators:
                order = operators[op]
                ops += self._turn_operands(op)
                if op.type in ("slice", "concat"):
                    axis: int = op.attributes["axis"]  # type: ignore[assignment]
                    op.attributes = {**op.attributes, "axis": order.index(axis % len(order))}
                for var in op.writes:
                    assert var.shape is not None
                    var.shape = tuple(var.shape[axis] for axis in order)
                    if "shape" in op.attributes:
                        op.attributes = {**op.attributes, "shape": type(op.attributes["shape"])(var.shape)}  # type: ignore[call-arg]
            elif op.type == "transpose" and op.inputs["x"][0] in self.orders:
                op.attributes = {**op.attributes, "axes": tuple(range(len(_axes(op))))}
            ops.append(op)
        self.main.ops[:] = ops
        self.main.program.changed()

    def _turn_operands(self, op: Op) -> list[Op]:
        """Let `op` read what it is to read; return the ops that make it."""
        made: list[Op] = []
        for slot, vars in op.inputs.items():
            given = list(vars)
            for number, var in enumerate(vars):
                if (op, var) in self.undone:
                    given[number] = self.undone[op, var]
                elif (op, var) in self.turned:
                    order, shape = self.turned[op, var], var.shape
                    assert shape is not None
                    given[number] = declare(var, tuple(shape[axis] for axis in order), "TURNED", op.block)
                    given[number].stop_gradient = var.stop_gradient
                    made.append(new_op(op, "transpose", {"x": var}, {"y": given[number]}, standard, {"axes": order}))
                    self.readers[var].append(made[-1])
            for old, new in zip(vars, given, strict=True):
                if new is not old:
                    self.readers[old].remove(op)
                    self.readers[new].append(op)
            op.inputs = {**op.inputs, slot: tuple(given)}
        return made


def _axes(transpose: Op) -> Axes:
    return transpose.attributes["axes"]  # type: ignore[return-value]


def _composed(first: Axes, second: Axes) -> Axes:
    """The order of one transpose after another."""
    return tuple(first[axis] for axis in second)


def _is_number(var: Var) -> bool:
    return var.shape is not None and all(size == 1 for size in var.shape) and len(var.shape) <= 1


def _has_shape(op: Op, var: Var) -> bool:
    """Whether the attribute of `op` says the shape of its output outright."""
    return tuple(op.attributes["shape"]) == var.shape  # type: ignore[arg-type]


def _order_before(before: Shape, after: Shape, order: Axes) -> Axes | None:
    """The order in which a tensor is reshaped from `before`, that gives it in `order` of `after`; None where there is none.

    Axes of one place come from nowhere. Of the others, those that are cut from one, or joined to one, must stay side by side.
    """
    groups = _matched(before, after)
    if groups is None:
        return None
    found: list[int] = []
    rest = [axis for axis in order if after[axis] != 1]
    while rest:
        group = next(group for group in groups if rest[0] in group[1])
        if rest[: len(group[1])] != group[1]:
            return None
        found += group[0]
        rest = rest[len(group[1]) :]
    if len(found) != len(before):
        return None  # which had axes of one place, and nothing says where these go
    return tuple(found)


def _matched(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The axes of both that hold the same elements, but those of one place; None where sizes do not tell."""
    left = [axis for axis, size in enumerate(before) if size != 1]
    right = [axis for axis, size in enumerate(after) if size != 1]
    groups = []
    while left and right:
        group = [left.pop(0)], [right.pop(0)]
        sizes = before[group[0][0]], after[group[1][0]]
        while not is_same(*sizes):
            if isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[0] > sizes[1] and right:
                group[1].append(right.pop(0))
                sizes = sizes[0], multiply(sizes[1], after[group[1][-1]])
            elif isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[0] < sizes[1] and left:
                group[0].append(left.pop(0))
                sizes = multiply(sizes[0], before[group[0][-1]]), sizes[1]
            else:
                return None
        groups.append(group)
    return None if left or right else groups

"""Cancel pairs of inverse transposes across the elementwise ops between them.

Before                                                       After
    x = transpose(linear, axes=(0, 2, 1, 3))                     y = add(multiply(linear, cos'), multiply(concat(...), sin'))
    y = add(multiply(x, cos), multiply(concat(...), sin))        z = transpose(y, axes=(0, 1, 2, 3))
    z = transpose(y, axes=(0, 2, 1, 3))

Modules move the heads of attention before the rows and rotate or repeat them; attention then moves them back. If no other op reads the
values between, they are computed in the original axis order by the same ops. `canonicalize` drops the remaining identity transpose.
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

_MOST_VALUES = 64  # between two transposes; modules have about a dozen, and longer chains would exceed Python's recursion limit


def cancel_transposes(program: Program, start: int, outputs: Iterable[object]) -> None:
    """Cancel transposes in the main block, from op `start` on. `outputs` are additional variables that count as read."""
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
    """The values before a transpose that can be computed in the axis order after it, and the order of each."""

    def __init__(self, program: Program, readers: dict[Var, list[Op | None]]):
        self.main = program.main
        self.readers = readers
        self.orders: dict[Var, Axes] = {}  # new axis order of a value: dimension i becomes dimension order[i]
        self.undone: dict[tuple[Op, Var], Var] = {}  # replaced reads of an op: the input of the cancelled transpose
        self.turned: dict[tuple[Op, Var], Axes] = {}  # reads in another axis order, by transposes that move no data

    def cancel(self, transpose: Op) -> None:
        """Compute the input of `transpose` in the order after it, if that cancels another transpose and no other op reads the values."""
        (x,) = transpose.inputs["x"]
        if not self._add(x, _axes(transpose)) or not self.undone:
            return
        if any(read in self.orders for _, read in (*self.undone, *self.turned)):
            return  # one value would be needed in two orders
        if all(self._may_read(reader, order) for var, order in self.orders.items() for reader in self.readers[var]):
            self._rewrite()

    def _may_read(self, reader: Op | None, order: Axes) -> bool:
        """Return whether `reader` belongs to the region or applies the same transpose."""
        if reader is None or reader.block is not self.main:
            return False
        return reader.writes[0] in self.orders or (reader.type == "transpose" and _axes(reader) == order)

    def _add(self, x: Var, order: Axes) -> bool:
        """Add `x` and its inputs to the region in that order; return whether that is possible."""
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
            sizes_from = [read for read in op.reads if read is not source]
            return not sizes_from and source.ndim == x.ndim and _has_shape(op, x) and self._operand(op, source, order)
        if op.type == "reshape":
            (source,) = op.inputs["x"]
            before = None if source.shape is None else _order_before(source.shape, x.shape, order)
            return before is not None and are_same(op.reads, (source,)) and _has_shape(op, x) and self._operand(op, source, before)
        if not is_elementwise(standard.get(op.type), op):
            return False
        last = order[-1] == len(order) - 1
        return all(_is_number(read) or (read.ndim == 1 and last) or self._operand(op, read, order) for read in op.reads)

    def _operand(self, op: Op, read: Var, order: Axes) -> bool:
        """Return whether `op` can read `read` in that order."""
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
        self.turned[op, read] = order  # only axes of size 1 move, so no data does
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
        """Redirect the inputs of `op` to their replacements; return the transposes that this needs."""
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
    """Return the axis order of two successive transposes."""
    return tuple(first[axis] for axis in second)


def _is_number(var: Var) -> bool:
    return var.shape is not None and all(size == 1 for size in var.shape) and len(var.shape) <= 1


def _has_shape(op: Op, var: Var) -> bool:
    """Return whether the shape attribute of `op` equals the shape of its output."""
    return tuple(op.attributes["shape"]) == var.shape  # type: ignore[arg-type]


def _order_before(before: Shape, after: Shape, order: Axes) -> Axes | None:
    """Return the axis order of the tensor of shape `before` whose reshape gives `order` of `after`; None if there is none.

    Axes of size 1 in `after` are ignored. Other axes that come from one axis, or are joined to one, must stay adjacent.
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
        return None  # axes of size 1 in `before` have no determined position
    return tuple(found)


def _matched(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """Pair the axes of both shapes that hold the same elements, ignoring size 1; None if the sizes do not determine the pairs."""
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

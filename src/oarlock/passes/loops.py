"""Functions that the passes on loops share: which values a loop steps through, and what an operator promises of stacks of them."""

from collections.abc import Collection, Iterator, Mapping

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import Shape, names_in
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import is_by_row
from oarlock.op.control.even_sizes import even_sizes
from oarlock.op.control.layout import Layout
from oarlock.registry.attributes import attributes_on_stacks, axes_alone
from oarlock.registry.declaration import Operator
from oarlock.registry.value_checks import checks_values

__all__ = ["StackedNames", "attributes_outside", "broadcasts", "copy_op", "loops_in", "outside_shape", "sums_rows"]


def loops_in(block: Block) -> Iterator[Op]:
    """The loops over sequences in `block` and in the blocks inside it, inner ones first."""
    for inner in reversed(inner_blocks(block)):
        yield from [op for op in inner.ops if op.type == "recurrent"]


class StackedNames:
    """Of each block the names of sizes that every trip of a loop in it agrees on: all that it can see, but for those of uneven stacks.

    Each block is looked through once: for the time of a pass, whose new variables have sizes of these names.
    """

    def __init__(self):
        self._found: dict[Block, set[str]] = {}

    def of(self, block: Block) -> set[str]:
        if block not in self._found:
            around = self.of(block.parent) if block.parent is not None else set()
            self._found[block] = around | even_sizes(block, around)
        return self._found[block]


def outside_shape(layout: Layout, inner: Var, names: set[str]) -> Shape | None:
    """The shape of the stack of `inner` over the trips; None where its trips have different sizes, as segments have."""
    _, sequence = layout.steps[0]
    if inner.shape is None or sequence.shape is None or layout.op.attributes.get("segments"):
        return None
    shape, leading = inner.shape, sequence.shape[0]
    if "splits" in layout.op.inputs:
        if not is_by_row(inner, layout.body):
            return None
        shape = shape[1:]
    even = all(name in names for size in shape for name in names_in(size))
    return (leading, *shape) if even else None


def attributes_outside(operator: Operator, op: Op, varying: Collection[Var], *, ragged: bool = False) -> Mapping[str, object] | None:
    """The attributes with which `op` on stacks of the `varying` is the stack of `op` on each: the others are the same in every trip.

    None where nothing promises that there are any. Stacks of a `ragged` loop have no dimension more: rows follow rows, so these
    must be among what is computed alone. Not so where values can make the kernel raise: its message would no longer say in which trip.
    """
    if (
        operator.effects
        or checks_values(operator, op)
        or op.blocks
        or any(isinstance(value, Var) and value in varying for value in op.attributes.values())
    ):
        return None
    group = operator.row_group
    if group is not None:
        return op.attributes if _fits_group(operator, op, group, varying, ragged) else None
    if operator.axis_attribute is not None and all(var in varying for var in op.reads):
        rank = max(len(var.shape or ()) for var in (*op.reads, *op.writes))
        if not ragged:
            return attributes_on_stacks(operator, op.attributes)
        return op.attributes if axes_alone(operator, op.attributes, rank) > 0 else None
    return op.attributes if broadcasts(operator, op, varying) else None


def broadcasts(operator: Operator, op: Op, varying: Collection[Var]) -> bool:
    """The same for an operator that broadcasts: what varies must have every dimension of the result, and give it its shape."""
    slots = (*operator.signature.inputs, *operator.signature.outputs)
    if operator.infer_function or not all(slot.axes and len(slot.axes) == 1 and slot.axes[0].kind == "broadcast" for slot in slots):
        return False
    if any(var not in varying for slot in operator.signature.outputs if slot.like for var in op.inputs.get(slot.like, ())):
        return False
    rank = len(op.writes[0].shape or ())
    return any(var in varying for var in op.reads) and all(len(var.shape or ()) == rank for var in op.reads if var in varying)


def sums_rows(operator: Operator, op: Op, varying: Collection[Var], *, ragged: bool = False) -> bool:
    """Whether `op` on stacks of the `varying` is the sum of `op` on each; `ragged` as in `attributes_outside`."""
    if operator.effects or op.blocks or any(isinstance(value, Var) for value in op.attributes.values()):
        return False
    if set(operator.summed_outputs) != {slot.name for slot in operator.signature.outputs}:
        return False
    groups = {slot.leading_group for slot in operator.signature.inputs} - {None}
    if len(groups) == 1:
        return _fits_group(operator, op, groups.pop(), varying, ragged)
    shape_only = {slot.name for slot in operator.signature.inputs if slot.shape_only}
    summed = [var for slot, vars in op.inputs.items() if slot not in shape_only for var in vars]
    return (
        not groups
        and len(summed) == 1
        and summed[0] in varying
        and not any(var in varying for slot in shape_only for var in op.inputs.get(slot, ()))
    )


def _fits_group(operator: Operator, op: Op, group: str | None, varying: Collection[Var], ragged: bool) -> bool:
    leading = {slot.name: len(slot.axes or ()) for slot in operator.signature.inputs if slot.leading_group == group}
    if ragged and any(len(var.shape or ()) < axes for slot, axes in leading.items() for var in op.inputs.get(slot, ())):
        return False  # the group is empty, and rows are what the operator computes across
    return any(op.inputs.get(slot) for slot in leading) and all(
        (var in varying) == (slot in leading) for slot, vars in op.inputs.items() for var in vars
    )


def copy_op(
    op: Op,
    into: Block,
    position: int,
    replaced: dict[Var, Var],
    outputs: dict[str, tuple[Var, ...]],
    attributes: Mapping[str, object] | None = None,
) -> Op:
    """Insert a copy of `op` that reads and defines other variables, and has other `attributes` where any are given."""
    given = op.attributes if attributes is None else attributes
    inputs = {slot: tuple(replaced.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
    attributes = {name: replaced.get(value, value) if isinstance(value, Var) else value for name, value in given.items()}
    copied = Op(into, op.type, inputs, outputs, attributes, role=op.role, location=op.location)
    into.ops.insert(position, copied)
    for var in copied.writes:
        var.op = copied
    into.program.changed()
    return copied

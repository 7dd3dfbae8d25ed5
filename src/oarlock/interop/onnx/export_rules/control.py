"""Blocks: a branch as `If`; loops over sequences of one length, and on a condition, as `Loop`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export_block
from oarlock.interop.onnx.export_rules.ragged_loop import RaggedSteps
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import names_in
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.export_lowering import Lowering


@export_block("conditional_block")
def conditional_block(lowering: "Lowering", g: Graph, op: Op) -> list[str]:
    """The block itself where it always runs; otherwise what it gives with a dimension in front, of size 1 or 0."""
    (body,) = op.blocks
    when = op.inputs.get("when")
    if not when:
        for inner, outer in zip(body.inputs, op.inputs["values"], strict=True):
            lowering.values[inner] = lowering.values[outer]
        lowering.ops(g, body.ops)
        return [lowering.values[var].name for var in body.outputs]
    then, otherwise = g.block(), g.block()
    then.op = otherwise.op = op
    for inner, outer in zip(body.inputs, op.inputs["values"], strict=True):
        lowering.give(then, inner, then.squeeze(lowering.values[outer], 0))
    lowering.ops(then, body.ops)
    names = [g.fresh(f"{var.name}/If") for var in op.writes]
    for var, outer in zip(body.outputs, op.writes, strict=True):
        lowering.leave(then, then.unsqueeze(lowering.values[var], 0), outer)
        lowering.leave(otherwise, zeros(otherwise, var, g.ints([0])), outer)
    g.append("If", [lowering.values[when[0]]], names, {"then_branch": then, "else_branch": otherwise})
    return names


def zeros(g: Graph, var: Var, leading: str | None = None) -> str:
    """Zeros of the declared type of a variable, after the size `leading`. A name that no value tells counts as 0."""
    sizes = g.dims(var.shape or (), missing=0)
    shape = sizes if leading is None else g("Concat", leading, sizes, axis=0)
    return g.filled(0, var.dtype, shape)


class Trips:
    """A `Loop` while it is built: its block, what it carries, and what it stacks."""

    def __init__(self, lowering: "Lowering", g: Graph, op: Op):
        self.lowering, self.g, self.op = lowering, g, op
        self.inner = g.block(in_loop=True)
        self.inner.op = op
        self.number = self._input("trip", DType.INT64)
        self.condition = self._input("running", DType.BOOL)
        self.initial: list[str] = []

    def _input(self, stem: str, dtype: DType) -> str:
        value = Value(self.inner.fresh(f"{self.op.writes[0].name}/{stem}"), dtype, ())
        self.inner.inputs.append(value)
        return value.name

    def carry(self, var: Var, initial: str, shape: Sequence | None = None) -> Value:
        """A value that goes from trip to trip: the name that it has in the block."""
        value = Value(self.inner.fresh(var.name), var.dtype, var.shape if shape is None else tuple(shape))
        self.inner.inputs.append(value)
        self.initial.append(initial)
        return value

    def run(self, count: str | None, condition: str | None, results: int) -> list[str]:
        """Append the loop; the names of what it carried last, then of its stacks."""
        names = [self.g.fresh(f"{self.op.writes[0].name}/Loop") for _ in range(results)]
        if condition is None and not self.initial:
            condition = self.g.scalar(True, DType.BOOL)  # the schema asks for two inputs
        self.g.append("Loop", [count, condition, *self.initial], names, {"body": self.inner})
        return names


def require_even(op: Op, vars: Sequence[Var], *, but: str | None = None) -> None:
    """Raises Unsupported for values that are stacked though they have another size in each trip, but for the rows `but` in front."""
    given = {name for slot in op.inputs.values() for var in slot for size in var.shape or () for name in names_in(size)}
    for var in vars:
        shape = var.shape or ()
        inside = shape[1:] if but is not None and shape and shape[0] == but else shape
        names = {name for size in inside for name in names_in(size)}
        if not names <= given or but in names:
            raise Unsupported(f'the values of "{var.name}", {var.type_text}, have another size in each trip, and ONNX stacks equal ones')


def backwards(g: Graph, x: str) -> str:
    """A stack in the other order."""
    return g.slice(x, 0, -1, -(2**63 - 1), -1)


@export_block("recurrent")
def recurrent(lowering: "Lowering", g: Graph, op: Op) -> list[str]:
    """Step by step; a loop that runs backwards reads from the end, and its stacks are turned round."""
    (body,) = op.blocks
    initial, summed = op.inputs.get("initial", ()), int(op.attributes.get("summed", 0))  # type: ignore[call-overload]
    stack_vars, memory_vars, sum_vars = _outputs(body, len(initial), summed)
    sequences = [lowering.values[var] for var in op.inputs["sequences"]]
    if op.inputs.get("splits"):
        return RaggedSteps(lowering, g, op, Trips(lowering, g, op)).write(stack_vars, memory_vars, sum_vars, require_even)
    require_even(op, stack_vars)
    reverse = bool(op.attributes.get("reverse"))
    count = g("Squeeze", g.dim(sequences[0], 0))
    trips = Trips(lowering, g, op)
    inner = trips.inner
    for var, outer in zip(body.inputs[len(sequences) :], initial, strict=True):
        lowering.values[var] = trips.carry(var, lowering.values[outer].name)
        inner.know(lowering.values[var])
    totals = [trips.carry(var, zeros(g, var)) for var in sum_vars]
    step = inner("Sub", inner("Sub", count, g.ints(1)), trips.number) if reverse else trips.number
    for var, sequence in zip(body.inputs, sequences, strict=False):
        lowering.give(inner, var, inner("Gather", sequence, step, axis=0))
    lowering.ops(inner, body.ops)
    lowering.leave(inner, inner("Identity", trips.condition), body.inputs[0], ())
    inner.outputs[0] = Value(inner.outputs[0].name, DType.BOOL, ())
    for var in memory_vars:
        lowering.leave(inner, lowering.values[var].name, var)
    for var, total in zip(sum_vars, totals, strict=True):
        lowering.leave(inner, inner("Add", total, lowering.values[var]), var)
    for var in stack_vars:
        lowering.leave(inner, lowering.values[var].name, var)
    names = trips.run(count, None, len(op.writes))
    carried, stacks = names[: len(initial) + summed], names[len(initial) + summed :]
    stacks = [backwards(g, name) for name in stacks] if reverse else stacks
    return [*stacks, *carried]


def _outputs(body: Block, memories: int, summed: int) -> tuple[list[Var], list[Var], list[Var]]:
    """A body's outputs: what is stacked, the next memories, what is summed."""
    sums = len(body.outputs) - summed
    return body.outputs[: sums - memories], body.outputs[sums - memories : sums], body.outputs[sums:]


@export_block("while")
def while_(lowering: "Lowering", g: Graph, op: Op) -> list[str]:
    """As long as the condition holds. After `max_trips` trips the loop ends; that it may not go on, ONNX cannot say."""
    (body,) = op.blocks
    initial = op.inputs.get("initial", ())
    stack_vars = body.outputs[1 : len(body.outputs) - len(initial)]
    require_even(op, stack_vars)
    trips = Trips(lowering, g, op)
    inner = trips.inner
    for var, outer in zip(body.inputs, initial, strict=True):
        lowering.values[var] = trips.carry(var, lowering.values[outer].name)
        inner.know(lowering.values[var])
    lowering.ops(inner, body.ops)
    lowering.leave(inner, lowering.values[body.outputs[0]].name, body.outputs[0])
    for var in (*body.outputs[len(body.outputs) - len(initial) :], *stack_vars):
        lowering.leave(inner, lowering.values[var].name, var)
    most = int(op.attributes.get("max_trips", 0))  # type: ignore[call-overload]
    names = trips.run(g.ints(most) if most else None, lowering.values[op.inputs["condition"][0]].name, len(op.writes))
    return [*names[len(initial) :], *names[: len(initial)]]

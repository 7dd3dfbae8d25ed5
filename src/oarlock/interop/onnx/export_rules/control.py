"""Blocks: branches as `If`, loops over sequences and conditional loops as `Loop`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oarlock.interop.onnx.export_graph import END, Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export_block
from oarlock.interop.onnx.export_rules.sequence import lengths_of, owners
from oarlock.interop.onnx.uneven_stack import UnevenStack
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import names_in
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import active_rows, is_by_row

if TYPE_CHECKING:
    from oarlock.interop.onnx.export_lowering import Lowering


@export_block("conditional_block")
def conditional_block(lowering: "Lowering", g: Graph, op: Op) -> list[str | UnevenStack]:
    """Write the block inline if it always runs; otherwise its outputs get a leading dimension of size 1 or 0."""
    (body,) = op.blocks
    when = op.inputs.get("when")
    if not when:
        for inner, outer in zip(body.inputs, op.inputs["values"], strict=True):
            lowering.alias(inner, outer)
        lowering.ops(g, body.ops)
        return [lowering.uneven.get(var) or lowering.values[var].name for var in body.outputs]
    if any(var in lowering.uneven for var in op.inputs["values"]):
        raise Unsupported("a stack of values that differ in size between iterations is read in a branch")
    then, otherwise = g.block(), g.block()
    then.op = otherwise.op = op
    for inner, outer in zip(body.inputs, op.inputs["values"], strict=True):
        lowering.give(then, inner, then.squeeze(lowering.values[outer], 0))
    lowering.ops(then, body.ops)
    names = [g.fresh(f"{var.name}/If") for var in op.writes]
    if any(var in lowering.uneven for var in body.outputs):
        raise Unsupported("a stack of values that differ in size between iterations is returned from a branch")
    for var, outer in zip(body.outputs, op.writes, strict=True):
        lowering.leave(then, then.unsqueeze(lowering.values[var], 0), outer)
        lowering.leave(otherwise, zeros(otherwise, var, g.ints([0])), outer)
    g.append("If", [lowering.values[when[0]]], names, {"then_branch": then, "else_branch": otherwise})
    return [*names]


def zeros(g: Graph, var: Var, leading: str | None = None) -> str:
    """Return zeros of a variable's declared type, after a leading size. Unknown names count as 0."""
    sizes = g.dims(var.shape or (), missing=0)
    shape = sizes if leading is None else g("Concat", leading, sizes, axis=0)
    return g.filled(0, var.dtype, shape)


class Trips:
    """A `Loop` under construction: its block, carried values and stacks."""

    def __init__(self, lowering: "Lowering", g: Graph, op: Op):
        self.lowering, self.g, self.op = lowering, g, op
        self.inner = g.block()
        self.inner.op = op
        self.number = self.inner.step = self._input("trip", DType.INT64)
        self.condition = self._input("running", DType.BOOL)
        self.initial: list[str] = []
        self.uneven: dict[Var, _Gathered] = {}

    def _input(self, stem: str, dtype: DType) -> str:
        value = Value(self.inner.fresh(f"{self.op.writes[0].name}/{stem}"), dtype, ())
        self.inner.inputs.append(value)
        return value.name

    def carry(self, var: Var, initial: str, shape: Sequence | None = None) -> Value:
        """Add a carried value; return its input in the block."""
        return self._carry(var.name, var.dtype, var.shape if shape is None else tuple(shape), initial)

    def _carry(self, stem: str, dtype: DType, shape: tuple | None, initial: str) -> Value:
        value = Value(self.inner.fresh(stem), dtype, shape)
        self.inner.inputs.append(value)
        self.initial.append(initial)
        return value

    def gather_uneven(self, vars: Sequence[Var], *, reverse: bool) -> None:
        """Carry the values of `vars` so far, in the order of the steps. Call after the block is written."""
        for var in vars:
            self.uneven[var] = _Gathered(self.lowering, self, var, reverse)

    def leave_stacks(self, stack_vars: Sequence[Var], leave: Callable[[Var], object] | None = None) -> None:
        """Add the outputs of the block: the carried uneven values, then the stacked value of each variable."""
        for gathered in self.uneven.values():
            self.inner.outputs += gathered.carried
        for var in stack_vars:
            if var in self.uneven:
                self.inner.outputs.append(self.uneven[var].stacked)
            elif leave is not None:
                leave(var)
            else:
                self.lowering.leave(self.inner, self.lowering.values[var].name, var)

    def run(
        self, count: str | None, condition: str | None, carried: int, stack_vars: Sequence[Var], *, reverse: bool = False
    ) -> tuple[list[str], list[str | UnevenStack]]:
        """Append the loop; return the names of the `carried` final values, and the stack of each variable."""
        many = carried + sum(len(item.carried) for item in self.uneven.values()) + len(stack_vars)
        names = [self.g.fresh(f"{self.op.writes[0].name}/Loop") for _ in range(many)]
        if condition is None and not self.initial:
            condition = self.g.scalar(True, DType.BOOL)  # the schema requires two inputs
        self.g.append("Loop", [count, condition, *self.initial], names, {"body": self.inner})
        last, further, stacks = names[:carried], names[carried : many - len(stack_vars)], names[many - len(stack_vars) :]
        parts: dict[Var, list[str]] = {}
        for var, gathered in self.uneven.items():
            parts[var], further = further[: len(gathered.carried)], further[len(gathered.carried) :]
        given: list[str | UnevenStack] = []
        for var, name in zip(stack_vars, stacks, strict=True):
            ordered = backwards(self.g, name) if reverse else name
            given.append(self.uneven[var].stack(parts[var], ordered) if var in parts else ordered)
        return last, given


class _Gathered:
    """A value that differs in size between iterations, appended to the values of earlier iterations."""

    def __init__(self, lowering: "Lowering", trips: Trips, var: Var, reverse: bool):
        inner, held = trips.inner, lowering.uneven.get(var)
        self.var, self.depth = var, 0 if held is None else 1 + len(held.counts)
        self.rank = len(var.shape or ()) if held is None else held.rank
        if held is None:
            value = lowering.values[var]
            parts = [(inner.reshape(value, [-1]), var.dtype, ())]
            stacked, sizes = inner("Shape", value), (self.rank,)
        else:
            parts = [(held.flat, var.dtype, ()), (held.shapes, DType.INT64, (self.rank,))]
            parts += [(counts, DType.INT64, ()) for counts in held.counts]
            stacked, sizes = inner("Squeeze", held.length(inner)), ()
        self.stacked = Value(stacked, DType.INT64, sizes)
        self.carried: list[Value] = []
        for name, dtype, rest in parts:
            shape: Any = (None, *rest)
            before = trips._carry(var.name, dtype, shape, trips.g.filled(0, dtype, trips.g.ints([0, *rest])))
            both = [name, before.name] if reverse else [before.name, name]
            self.carried.append(Value(inner("Concat", *both, axis=0), dtype, shape))

    def stack(self, carried: Sequence[str], stacked: str) -> UnevenStack:
        """Return the stack, from the names of the loop's final state and stacked output."""
        flat, *rest = carried
        if not rest:
            return UnevenStack(self.var.dtype, self.rank, flat, stacked)
        return UnevenStack(self.var.dtype, self.rank, flat, rest[0], (stacked, *rest[1:]))


def find_uneven(lowering: "Lowering", op: Op, vars: Sequence[Var], *, but: str | None = None) -> list[Var]:
    """Return the stacked variables that may differ in size between iterations, ignoring the leading rows `but`."""
    outer = [var for slot in op.inputs.values() for var in slot if var not in lowering.uneven]
    given = {name for var in outer for size in var.shape or () for name in names_in(size)}
    found = []
    for var in vars:
        shape = var.shape or ()
        by_row = but is not None and bool(shape) and shape[0] == but
        names = {name for size in (shape[1:] if by_row else shape) for name in names_in(size)}
        if var in lowering.uneven or not names <= given or but in names:
            if by_row:
                raise Unsupported(f'the rows of "{var.name}", {var.type_text}, differ in size between iterations')
            found.append(var)
    return found


def backwards(g: Graph, x: str) -> str:
    """Reverse a stack."""
    return g.slice(x, 0, -1, -(2**63 - 1), -1)


@export_block("recurrent")
def recurrent(lowering: "Lowering", g: Graph, op: Op) -> list[str | UnevenStack]:
    """Write a loop over steps. In reverse, it reads from the end, and its stacks are reversed."""
    (body,) = op.blocks
    initial, summed = op.inputs.get("initial", ()), int(op.attributes.get("summed", 0))  # type: ignore[call-overload]
    stack_vars, memory_vars, sum_vars = _outputs(body, len(initial), summed)
    if op.attributes.get("segments"):
        raise Unsupported("a loop over segments of sequences, created by a pass, cannot be exported")
    if op.inputs.get("splits"):
        return RaggedSteps(lowering, g, op, Trips(lowering, g, op)).write(stack_vars, memory_vars, sum_vars, find_uneven)
    sequences = [lowering.uneven.get(var) or lowering.values[var] for var in op.inputs["sequences"]]
    reverse, first = bool(op.attributes.get("reverse")), sequences[0]
    count = g("Squeeze", first.length(g) if isinstance(first, UnevenStack) else g.dim(first, 0))
    trips = Trips(lowering, g, op)
    inner = trips.inner
    for var, outer in zip(body.inputs[len(sequences) :], initial, strict=True):
        lowering.values[var] = trips.carry(var, lowering.values[outer].name)
        inner.know(lowering.values[var])
    totals = [trips.carry(var, zeros(g, var)) for var in sum_vars]
    step = inner("Sub", inner("Sub", count, g.ints(1)), trips.number) if reverse else trips.number
    inner.step = step
    for var, sequence in zip(body.inputs, sequences, strict=False):
        lowering.give_step(g, inner, var, sequence, step)
    lowering.ops(inner, body.ops)
    trips.gather_uneven(find_uneven(lowering, op, stack_vars), reverse=reverse)
    lowering.leave(inner, inner("Identity", trips.condition), body.inputs[0], ())
    inner.outputs[0] = Value(inner.outputs[0].name, DType.BOOL, ())
    for var in memory_vars:
        lowering.leave(inner, lowering.values[var].name, var)
    for var, total in zip(sum_vars, totals, strict=True):
        lowering.leave(inner, inner("Add", total, lowering.values[var]), var)
    trips.leave_stacks(stack_vars)
    carried, stacks = trips.run(count, None, len(initial) + summed, stack_vars, reverse=reverse)
    return [*stacks, *carried]


def _outputs(body: Block, memories: int, summed: int) -> tuple[list[Var], list[Var], list[Var]]:
    """Return the outputs of a body: the stacked ones, the next memories, the summed ones."""
    sums = len(body.outputs) - summed
    return body.outputs[: sums - memories], body.outputs[sums - memories : sums], body.outputs[sums:]


@export_block("while")
def while_(lowering: "Lowering", g: Graph, op: Op) -> list[str | UnevenStack]:
    """Write a conditional loop. It ends after `max_trips` iterations without an error, as ONNX cannot raise."""
    (body,) = op.blocks
    initial = op.inputs.get("initial", ())
    stack_vars = body.outputs[1 : len(body.outputs) - len(initial)]
    trips = Trips(lowering, g, op)
    inner = trips.inner
    for var, outer in zip(body.inputs, initial, strict=True):
        lowering.values[var] = trips.carry(var, lowering.values[outer].name)
        inner.know(lowering.values[var])
    lowering.ops(inner, body.ops)
    trips.gather_uneven(find_uneven(lowering, op, stack_vars), reverse=False)
    lowering.leave(inner, lowering.values[body.outputs[0]].name, body.outputs[0])
    for var in body.outputs[len(body.outputs) - len(initial) :]:
        lowering.leave(inner, lowering.values[var].name, var)
    trips.leave_stacks(stack_vars)
    most = int(op.attributes.get("max_trips", 0))  # type: ignore[call-overload]
    condition = lowering.values[op.inputs["condition"][0]].name
    carried, stacks = trips.run(g.ints(most) if most else None, condition, len(initial), stack_vars)
    return [*stacks, *carried]


# Ragged sequences


class RaggedRows:
    """The step layout of row splits, as computed by `op/control/ragged_rows.py`. All fields are names of int64 tensors."""

    def __init__(self, g: Graph, splits: Value, total: str):
        lengths = lengths_of(g, splits)
        self.count = g("Sub", g.dim(splits, 0), g.ints([1]))
        _, self.order = g("TopK", lengths, self.count, outputs=2, axis=0, largest=1, sorted=1)
        rows = g.arange(self.count)
        self.rank = g("ScatterElements", rows, self.order, rows, axis=0)
        self.steps = g.reduce("ReduceMax", g("Concat", lengths, g.ints([0]), axis=0), None)
        has_one = g("Greater", g.unsqueeze(lengths, 0), g.unsqueeze(g.arange(self.steps), 1))  # [steps n]
        self.counts = g.reduce("ReduceSum", g.cast(has_one, DType.INT64), [1])
        self.starts = g("CumSum", self.counts, g.ints(0), exclusive=1)
        own = owners(g, splits, total)
        numbers = g.arange(total)
        column = g("Sub", numbers, g("Gather", g.slice(splits, 0, 0, -1), own, axis=0))
        own_rank = g("Gather", self.rank, own, axis=0)
        self.place = g("Add", g("Gather", self.starts, column, axis=0), own_rank)
        self.packed = g("ScatterElements", numbers, self.place, numbers, axis=0)
        self.cell = g("Add", g("Mul", column, self.count), own_rank)


class RaggedSteps:
    """A ragged loop under construction.

    The rows of each iteration are padded with zeros, as ONNX only stacks values of equal size; the real elements are gathered afterwards.
    """

    def __init__(self, lowering: "Lowering", g: Graph, op: Op, trips: Any):
        self.lowering, self.g, self.op, self.trips = lowering, g, op, trips
        (self.body,) = op.blocks
        self.rows = RaggedRows(g, lowering.values[op.inputs["splits"][0]], g.dim(lowering.values[op.inputs["sequences"][0]], 0))

    def write(
        self, stack_vars: Sequence[Var], memory_vars: Sequence[Var], sum_vars: Sequence[Var], find_uneven: Callable[..., list[Var]]
    ) -> list[str | UnevenStack]:
        """Append the loop; return the names of the stacks, final memories and sums."""
        g, op, body, inner, trips, lowering, rows = self.g, self.op, self.body, self.trips.inner, self.trips, self.lowering, self.rows
        sequences, initial = op.inputs["sequences"], op.inputs.get("initial", ())
        given = body.inputs[len(sequences) :]
        by_row = [is_by_row(var, body) for var in given]
        before = [
            trips.carry(
                var,
                g("Gather", lowering.values[outer], rows.order, axis=0) if sorted_ else lowering.values[outer].name,
                outer.shape,
            )
            for var, outer, sorted_ in zip(given, initial, by_row, strict=True)
        ]
        totals = [trips.carry(var, g.filled(0, var.dtype, g.dims(var.shape or (), missing=0))) for var in sum_vars]
        count = self._step_inputs(sequences)
        for var, memory, sorted_ in zip(given, before, by_row, strict=True):
            lowering.give(inner, var, inner.slice(memory, 0, 0, count) if sorted_ else memory.name)
        lowering.ops(inner, body.ops)
        reverse = bool(op.attributes.get("reverse"))
        trips.gather_uneven(find_uneven(lowering, op, stack_vars, but=active_rows(body)), reverse=reverse)
        inner.outputs.append(Value(inner("Identity", trips.condition), DType.BOOL, ()))
        for var, memory, sorted_ in zip(memory_vars, before, by_row, strict=True):
            following = lowering.values[var].name
            if sorted_:
                following = inner("Concat", following, inner.slice(memory, 0, count, END), axis=0)
            lowering.leave(inner, following, var, memory.shape)
        for var, total in zip(sum_vars, totals, strict=True):
            lowering.leave(inner, inner("Add", total, lowering.values[var]), var)
        trips.leave_stacks(stack_vars, lambda var: self._stack(var, count))
        last, stacks = trips.run(g("Squeeze", rows.steps), None, len(given) + len(totals), stack_vars, reverse=reverse)
        carried, sums = last[: len(given)], last[len(given) :]
        finals = [g("Gather", name, rows.rank, axis=0) if sorted_ else name for name, sorted_ in zip(carried, by_row, strict=True)]
        return [*(self._joined(var, name) for var, name in zip(stack_vars, stacks, strict=True)), *finals, *sums]

    def _step_inputs(self, sequences: Sequence[Var]) -> str:
        """Bind the inputs of the block to the rows of each sequence; return the number of active rows, int64[1]."""
        g, inner, rows, lowering = self.g, self.trips.inner, self.rows, self.lowering
        step = self.trips.number
        if self.op.attributes.get("reverse"):
            step = inner("Sub", inner("Sub", g("Squeeze", rows.steps), g.ints(1)), step)
        inner.step, at = step, inner.unsqueeze(step, 0)
        count, start = inner("Gather", rows.counts, at, axis=0), inner("Gather", rows.starts, at, axis=0)
        stop = inner("Add", start, count)
        for var, outer in zip(self.body.inputs, sequences, strict=False):
            if is_by_row(var, self.body):
                packed = g("Gather", lowering.values[outer], rows.packed, axis=0)
                lowering.give(inner, var, inner.slice(packed, 0, start, stop))
            else:
                lowering.give_step(g, inner, var, lowering.uneven.get(outer) or lowering.values[outer], step)
        return count

    def _stack(self, var: Var, count: str) -> None:
        inner, name = self.trips.inner, self.lowering.values[var].name
        shape: Sequence = var.shape or ()
        if is_by_row(var, self.body):
            missing = inner("Sub", self.rows.count, count)
            rest = [inner.dim(self.lowering.values[var], axis) for axis in range(1, len(shape))]
            zeros = inner.filled(0, var.dtype, inner("Concat", missing, *rest, axis=0))
            name = inner("Concat", name, zeros, axis=0)
            shape = (None, *shape[1:])
        self.lowering.leave(inner, name, var, shape)

    def _joined(self, var: Var, name: str | UnevenStack) -> str | UnevenStack:
        """Return a stack in the layout of the program: the elements row by row, or one value per step."""
        g = self.g
        if isinstance(name, UnevenStack) or not is_by_row(var, self.body):
            return name
        shape = g("Shape", name)
        cells = g("Mul", g("Slice", shape, g.ints([0]), g.ints([1])), g("Slice", shape, g.ints([1]), g.ints([2])))
        flat = g.reshape(name, g("Concat", cells, g("Slice", shape, g.ints([2]), g.ints([END])), axis=0))
        return g("Gather", flat, self.rows.cell, axis=0)

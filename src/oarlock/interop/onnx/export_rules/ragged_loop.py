"""Loops over ragged sequences as `Loop`: rows are sorted by length, so that the active rows come first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oarlock.interop.onnx.export_graph import END, Graph, Value
from oarlock.interop.onnx.export_rules.sequence import lengths_of, owners
from oarlock.interop.onnx.uneven_stack import UnevenStack
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import active_rows, is_by_row

if TYPE_CHECKING:
    from oarlock.interop.onnx.export_lowering import Lowering


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

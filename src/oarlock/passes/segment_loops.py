"""Segments of loops: a loop that computes forward values again goes through its sequences a segment of steps at a time."""

from collections.abc import Collection

from oarlock.ir.block import Block
from oarlock.ir.copy import blocks_in_order
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.substitution import replace_reads
from oarlock.ir.var import Var, are_same, is_among
from oarlock.op.control.layout import Carried, Layout
from oarlock.passes.loops import StackedNames, loops_in, outside_shape
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.value_checks import checks_values

__all__ = ["segment_loops"]

_WRITTEN = ("gather", "scatter_add", "optimization_barrier")

_FEW = 8  # steps

_SEGMENTS = 6  # more of them save little beside the sequences, and the gradients of weights are added up once for each


def segment_loops(program: Program, catalogue: Catalogue) -> int:
    """Cut the loops of `program` that compute forward values again; return how many loops that were.

    Before                                           After
        dzs, dw = recurrent(dhs, hs, xs, body=           dzs, dw = recurrent(dhs, hs, xs, segments=6, body=
            k = optimization_barrier(h)                      dzs', s = recurrent(dhs', hs', xs', body=
            y = tanh(add(linear(k, u), x))                       y = tanh(add(linear(h, u), x))
            dz = tanh_dx(y, dh)                                  dz = tanh_dx(y, dh)
            s = linear_dw(h, dz) -> dz, sum of s)                s = linear_dw(h, dz) -> dz, sum of s)
                                                             -> dzs', sum of s)

    So `batch_prologue` may compute again by one op what all steps of a segment need, and `batch_epilogue` may compute of them what is
    returned: stacks of such values are those of a segment. The rows of a table that are a sequence are taken from the table again, a
    segment at a time, so they need not be kept; and where the gradients of such rows are only added up, that is done segment by segment.
    Legal for any loop over sequences of even sizes: what goes from step to step goes from segment to segment. Sums are those of
    the sums of segments: values change in their last bits. Costs a sum of each weight's gradient for each segment, and views.
    Does not apply to ragged sequences, to eight steps or fewer, nor to loops with random ops, ops that may refuse values, or blocks.
    """
    if any(catalogue.find(type) is not standard.find(type) for type in _WRITTEN):
        return 0  # its operators are someone else's
    names = StackedNames()
    loops = [op for op in loops_in(program.main) if _may_be_cut(op, names.of(op.block), catalogue)]
    for op in loops:
        _Cut(op).write()
    if loops:
        program.blocks = blocks_in_order(program)
        for index, block in enumerate(program.blocks):
            block.index = index
        program.changed()
    return len(loops)


def _may_be_cut(loop: Op, names: set[str], catalogue: Catalogue) -> bool:
    layout = Layout.of(loop)
    if "splits" in loop.inputs or not any(op.type == "optimization_barrier" and op.reads[0].block is op.block for op in layout.body.ops):
        return False
    for op in layout.body.ops:
        operator = catalogue.get(op.type)
        if op.blocks or operator.effects or operator.wants_context or checks_values(operator, op):
            return False
    first = layout.steps[0][1].shape
    if not first or (isinstance(first[0], int) and first[0] <= _FEW):
        return False
    return all(outside_shape(layout, inner, names) is not None for inner, _ in (*layout.steps, *layout.stacked))


class _Cut:
    """One loop, and what is written around it: a loop over segments, in whose block it goes through the steps of one."""

    def __init__(self, loop: Op):
        _drop_barriers(loop.blocks[0])
        self.loop, self.layout = loop, Layout.of(loop)
        self.around, self.program = loop.block, loop.block.program
        stem = self.layout.body.name.partition(".")[0]
        self.block = self.program.new_block(f"{self.program.unique(f'{stem}@SEGMENT')}.body", self.around)
        self.steps = self.program.unique("steps")  # of a segment
        self.given: dict[Var, Var] = {}  # a sequence -> the segment of it that a trip is given
        self.ops: list[Op] = []  # of the block

    def write(self) -> None:
        before, position = self.layout, self.around.ops.index(self.loop)
        added_up = self._added_up(self.around.ops[:position], self.around.ops[position:])
        inside = Layout(self.loop, before.body)
        inside.steps = [(step, self._taken(sequence)) for step, sequence in before.steps]
        inside.carried = [self._carried(each) for each in before.carried]
        inside.stacked = [(var, self._part(stack, self._shape(stack))) for var, stack in before.stacked]
        inside.summed = [(var, self._part(total, total.shape)) for var, total in before.summed]
        self.ops.append(self.loop)
        around = Layout(self._loop_around(), self.block)
        around.carried = [Carried(n.initial, n.final, o.initial, o.final) for o, n in zip(before.carried, inside.carried, strict=True)]
        around.summed = [(part, total) for (_, part), (_, total) in zip(inside.summed, before.summed, strict=True)]
        for (_, part), (_, stack) in zip(inside.stacked, before.stacked, strict=True):
            if stack in added_up:
                around.summed.append(self._add_up(added_up[stack], part))
            else:
                around.stacked.append((part, stack))
        around.steps = [(part, sequence) for sequence, part in self.given.items()]
        self.loop.block = before.body.parent = self.block
        self.block.ops = self.ops
        inside.write()
        around.write()
        self.around.ops[position] = _define(around.op)
        self.around.ops = [op for op in self.around.ops if op not in added_up.values()]

    def _loop_around(self) -> Op:
        attributes = {**self.loop.attributes, "body": self.block, "segments": _SEGMENTS}
        inputs: dict[str, tuple[Var, ...]] = dict.fromkeys(self.loop.inputs, ())
        outputs: dict[str, tuple[Var, ...]] = dict.fromkeys(self.loop.outputs, ())
        role, location = self.loop.role, self.loop.location
        return Op(self.around, self.loop.type, inputs, outputs, attributes, blocks=(self.block,), role=role, location=location)

    def _append(self, type: str, inputs: dict[str, tuple[Var, ...]], result: Var) -> None:
        made = Op(self.block, type, inputs, {"y": (result,)}, {}, role=self.loop.role, location=self.loop.location)
        self.ops.append(_define(made))

    def _shape(self, sequence: Var) -> Shape:
        return (self.steps, *(sequence.shape or ())[1:])

    def _part(self, outside: Var, shape: Shape | None) -> Var:
        """The result of one segment, in place of what is `outside`."""
        var = declare(outside, shape, "SEGMENT", self.block)
        var.op = self.loop
        return var

    def _carried(self, each: Carried) -> Carried:
        begin = declare(each.initial, each.initial.shape, "SEGMENT", self.block)
        return Carried(each.inside, each.following, begin, self._part(each.final, each.final.shape))

    def _given(self, sequence: Var) -> Var:
        if sequence not in self.given:
            self.given[sequence] = declare(sequence, self._shape(sequence), "SEGMENT", self.block)
        return self.given[sequence]

    def _taken(self, sequence: Var) -> Var:
        """The segment of a sequence: one that is given or, of rows of a table, one that is taken from that again."""
        lookup = sequence.op
        if lookup is None or lookup.block is not self.around or not self._takes_rows(lookup):
            return self._given(sequence)
        taken = declare(sequence, self._shape(sequence), "SEGMENT", self.block)
        inputs = {"x": lookup.inputs["x"], "rows": (self._given(*lookup.inputs["rows"]),)}
        self._append("gather", inputs, taken)
        return taken

    def _takes_rows(self, op: Op) -> bool:
        """Whether an op takes rows of a parameter for each step."""
        if op.type != "gather" or op.attributes:
            return False
        (table,), (rows,) = op.inputs["x"], op.inputs["rows"]
        return table.persistable and (rows.shape or ())[:1] == (self.layout.steps[0][1].shape or ())[:1]

    def _added_up(self, earlier: Collection[Op], later: Collection[Op]) -> dict[Var, Op]:
        """The stacks that are but added to rows of a table, by ids that it was asked for before, with the ops that do so."""
        lookups = {(op.inputs["x"], op.inputs["rows"]) for op in earlier if self._takes_rows(op)}
        wanted = {*self.program.targets.values(), *self.around.outputs}
        found: dict[Var, Op] = {}
        for _, stack in self.layout.stacked:
            readers = [op for op in later if is_among(stack, op.reads)]
            if len(readers) != 1 or stack in wanted or readers[0].type != "scatter_add" or readers[0].attributes:
                continue
            inputs = readers[0].inputs
            if are_same(inputs["values"], (stack,)) and (inputs["like"], inputs["rows"]) in lookups:
                found[stack] = readers[0]
        return found

    def _add_up(self, op: Op, part: Var) -> tuple[Var, Var]:
        """Let each segment do what `op` does with a stack, of which it has a `part`; return what it gives, and the sum of that."""
        (result,) = op.writes
        found = declare(result, result.shape, "SEGMENT", self.block)
        inputs = {**op.inputs, "values": (part,), "rows": (self._given(*op.inputs["rows"]),)}
        self._append("scatter_add", inputs, found)
        return found, result


def _define(op: Op) -> Op:
    for var in op.writes:
        var.op = op
    return op


def _drop_barriers(body: Block) -> None:
    """Let ops read what steps have behind barriers: of a segment, nobody else computes the same."""
    barriers: dict[Var, Var] = {}
    for op in body.ops:
        if op.type == "optimization_barrier" and op.reads[0].block is body:
            (read,), (result,) = op.reads, op.writes
            barriers[result] = barriers.get(read, read)
    body.ops = [op for op in body.ops if barriers.keys().isdisjoint(op.writes)]
    for var in barriers:
        del body.vars[var.name]
    replace_reads(body, barriers)

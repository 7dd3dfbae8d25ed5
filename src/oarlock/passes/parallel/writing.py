"""The program that workers run together, written op by op from the decisions about each."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.sharding import Sharding
from oarlock.ir.size import Size, names_in, rename
from oarlock.ir.size import divide as divide_size
from oarlock.ir.size import multiply as multiply_sizes
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var, is_among
from oarlock.op.choice import where
from oarlock.op.collective import all_gather, all_reduce, reduce_scatter, shard, worker_index
from oarlock.op.comparison import equal, less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.control.layout import Layout
from oarlock.op.creation import full, full_like
from oarlock.op.cumulative import cumsum
from oarlock.op.elementwise import add
from oarlock.op.manipulation import concat, reshape
from oarlock.op.sequence import sequence_lengths
from oarlock.passes.parallel.analysis import Analysis
from oarlock.passes.parallel.parts import name_parts
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Kind, Placement, rows_of, sharded, share_of
from oarlock.passes.parallel.row_writing import ROW_WAYS, with_known_sizes
from oarlock.passes.parallel.rows_of_workers import RowsOfWorkers, free_name, written_into
from oarlock.passes.parallel.share_writing import SHARE_WAYS
from oarlock.passes.parallel.valid_rows import VALID_WAYS
from oarlock.passes.rows import SHAPED
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import append_op

__all__ = ["Writing"]

_PARTS = (Kind.PARTIAL, Kind.SHARES)
_FIRST_BUCKET = 2**20  # bytes: the exchange of the first gradients begins early


class Writing:
    """One application to a program, of which an analysis has decided on every op; `ways` to write some, in place of the usual ones."""

    def __init__(self, program: Program, analysis: Analysis, bucket_bytes: int, ways: "Mapping[str, Way]" = MappingProxyType({})):
        self.program = program
        self.ways = {**ROW_WAYS, **SHARE_WAYS, **VALID_WAYS, **ways}
        self.decisions = analysis.decisions
        self.placed = analysis.placed
        self.bucket_bytes = bucket_bytes
        self.rows = RowsOfWorkers()
        self.converted: dict[tuple[Var, Placement], Var] = {}
        self.valid_counts: dict[tuple[Var, object, Block], Var] = {}
        self.summed: set[Var] = self._wanted_whole()
        self.shapes = {var: var.shape for var in self.placed}  # before sizes are called by the names of the rows of all
        for var, placement in self.placed.items():
            self._take_share(var, placement)
        self.waiting: dict[tuple[Block, Role], list[Var]] = defaultdict(list)
        self.summing: set[tuple[Block, Role]] = set()  # of which some were exchanged
        self.count = 0
        self._find_rows()

    def _take_share(self, var: Var, placement: Placement) -> None:
        """Give a variable of which each worker has a share the shape of that."""
        if placement.kind is Kind.SHARES:
            var.shape = share_of(var.shape or (), placement)
            if var.persistable:
                var.sharding = Sharding(placement.axis, placement.workers)

    def run(self) -> int:
        """Write the program; return how many collective ops it has."""
        main = self.program.main
        self._block(main)
        self._rename_sizes()
        for label, var in self.program.targets.items():
            if self._is_no_value(var):
                self.program.targets[label] = self.converted[var, REPLICATED]
        parts = [var for var in self.shapes if self.placed[var] is PARTIAL]
        totals = {var: self.converted[var, REPLICATED] for var in parts if (var, REPLICATED) in self.converted}
        name_parts(self.program, totals, [var for var in parts if var not in totals and var.op is not None])
        self.program.claim_names()
        self.program.changed()
        return self.count

    # Blocks and ops

    def _block(self, block: Block) -> None:
        ops, block.ops = block.ops, []
        tail = [op for op in ops if op.is_commit]
        for op in ops:
            if op.role is not Role.FORWARD and self.waiting[block, Role.FORWARD]:
                self._sum(block, Role.FORWARD)
            if not op.is_commit:
                self._op(op)
        if block.parent is None:
            for var in self.program.targets.values():
                if self._is_no_value(var):
                    self.convert(var, REPLICATED)
        for place in [place for place, vars in self.waiting.items() if vars and place[0] is block]:
            self._sum(*place)
        for op in tail:
            needs = self.decisions[op].needs
            op.inputs = {slot: tuple(self.convert(var, needs[var]) for var in vars) for slot, vars in op.inputs.items()}
        block.ops += tail

    def _is_no_value(self, var: Var) -> bool:
        """Whether a worker has of a target only what others have to add."""
        return self.placed.get(var, REPLICATED).kind in _PARTS

    def _op(self, op: Op) -> None:
        decision = self.decisions[op]
        with self.program.write_as(op.role, op.location):
            found = {var: self.convert(var, need) for var, need in decision.needs.items()}
            op.inputs = {slot: tuple(found.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
            op.attributes = {name: found.get(value, value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
            op.attributes = {**op.attributes, **decision.attributes}
            if op.type in SHAPED:
                op.attributes["shape"] = with_known_sizes(op)
            if decision.written:
                self.ways[decision.written](self, op)
            else:
                self._owned_blocks(op)
                op.block.ops.append(op)
        for var in op.writes:
            if self.placed.get(var) is PARTIAL and var in self.summed:
                self._sum_later(var)

    def _owned_blocks(self, op: Op) -> None:
        if not op.blocks:
            return
        (body,) = op.blocks
        self._block(body)
        needs = self.decisions[op].outputs
        with self.program.write_as(op.role, op.location):
            body.outputs = [self.convert(var, need) for var, need in zip(body.outputs, needs, strict=True)]
        Layout.of(op).write()

    def _wanted_whole(self) -> set[Var]:
        """The partial sums that an op or a target needs whole; and results, such as a cost, which are fetched though no op reads them."""
        wanted = {var for decision in self.decisions.values() for var, need in decision.needs.items() if need.kind not in _PARTS}
        for op, decision in self.decisions.items():
            for body in op.blocks:
                wanted |= {var for var, need in zip(body.outputs, decision.outputs, strict=True) if need.kind not in _PARTS}
        return wanted | self._results() | set(self.program.targets.values())

    def _results(self) -> set[Var]:
        """The partial sums of the forward pass that may be fetched: single numbers, means, and those of the main block that no op reads."""
        forward = [op for op in self.decisions if op.role is Role.FORWARD]
        read = {var for op in self.decisions for var in _read_values(op)}
        found = {var for op in forward if self.decisions[op].written in ("mean", "valid_mean") for var in op.writes}
        results = [var for op in forward if op.block.parent is None for var in op.writes if var.shape == () or var not in read]
        return found | {var for var in results if self.placed.get(var) is PARTIAL}

    # Partial sums, several in one op

    def _sum_later(self, var: Var) -> None:
        """Let the workers exchange a partial sum with others of its role, when these are enough, or when it is asked for.

        So what the forward pass exchanges waits for no gradient.
        """
        place = _place_of(var)
        if self.waiting[place] and self.waiting[place][0].dtype is not var.dtype:
            self._sum(*place)
        waiting = self.waiting[place]
        waiting.append(var)
        if sum(map(_bytes, waiting)) >= (self.bucket_bytes if place in self.summing else min(_FIRST_BUCKET, self.bucket_bytes)):
            self._sum(*place)

    def _sum(self, block: Block, role: Role) -> None:
        vars = self.waiting.pop((block, role))
        self.summing.add((block, role))
        with written_into(block, role):
            sums = all_reduce(vars)
        self.count += 1
        for var, total in zip(vars, sums, strict=True):
            self.converted[var, REPLICATED] = total
            self.placed[total] = REPLICATED

    # Other placements

    def convert(self, var: Var, need: Placement) -> Var:
        """The variable that has the value of `var` in another placement."""
        placed = self.placed.get(var, REPLICATED)
        if placed == need:
            return var
        if (var, need) not in self.converted:
            if placed is PARTIAL and need is REPLICATED:
                if not is_among(var, self.waiting[_place_of(var)]):
                    self._sum_later(var)
                self._sum(*_place_of(var))
            else:
                with written_into(var.block, self.program.writing[0]):
                    made = self._converted(var, placed, need)
                self.converted[var, need] = made
                self.placed[made] = need
        return self.converted[var, need]

    def _converted(self, var: Var, placed: Placement, need: Placement) -> Var:
        if Kind.SHARES in (placed.kind, need.kind) or need is PARTIAL:
            return self._to_or_from_shares(var, placed, need)
        if placed.kind is Kind.SPLITS:
            return self._whole_splits(var)
        if placed.kind is Kind.NUMBERS:
            counted = _counted_from(self.rows.get(placed.rows, var.block).first, var)  # type: ignore[arg-type]
            self.placed[counted] = sharded()
            return self.convert(counted, need)
        if placed is PARTIAL:
            return self.convert(self.convert(var, REPLICATED), need)
        if placed is REPLICATED:
            return self._own_part(var, (self.shapes.get(var) or var.shape)[need.axis], need)  # type: ignore[index]
        if _is_in_parts(var, placed) and need is REPLICATED:
            parts = self._in_parts(var, placed)
            self.placed[parts] = sharded(placed.axis + 1)
            return self._joined(self.convert(parts, REPLICATED), var, placed.axis)
        if need is REPLICATED:
            rows = self.rows.get(var.shape[placed.axis], var.block)  # type: ignore[index]
            counts, whole = rows.counts, rows.whole
            self.count += 1
            return self._named(all_gather(var, counts, whole, axis=placed.axis), var, "all")
        return self._own_part(self.convert(var, REPLICATED), var.shape[need.axis], need)  # type: ignore[index]

    def _own_part(self, whole: Var, rows: Size, need: Placement) -> Var:
        """The part that this worker has of what is whole: so many `rows` along the axis."""
        if _is_in_parts(whole, need):
            inside = divide_size(rows, need.outer)
            assert inside is not None, (whole.describe(), need)
            own = self._own_part(self._in_parts(whole, need), inside, sharded(need.axis + 1))
            return self._joined(own, whole, need.axis)
        told = self.rows.get(rows, whole.block)
        counts, own = told.counts, told.own
        return self._named(shard(whole, counts, own, axis=need.axis), whole, "own")

    def _in_parts(self, var: Var, placement: Placement) -> Var:
        """The parts that an axis has, along an axis of their own in front of it."""
        shape, axis = var.shape or (), placement.axis
        rows = divide_size(shape[axis], placement.outer)
        assert rows is not None, (var.describe(), placement)
        return reshape(var, shape=Sizes((*shape[:axis], placement.outer, rows, *shape[axis + 1 :])))

    def _joined(self, parts: Var, var: Var, axis: int) -> Var:
        """Such parts of `var`, one after another again."""
        shape = parts.shape or ()
        joined = reshape(parts, shape=Sizes((*shape[:axis], multiply_sizes(shape[axis], shape[axis + 1]), *shape[axis + 2 :])))
        return self._named(joined, var, "joined")

    def _to_or_from_shares(self, var: Var, placed: Placement, need: Placement) -> Var:
        if placed.kind is Kind.SHARES and need is REPLICATED:
            self.count += 1
            return self._named(all_gather(var, axis=placed.axis, workers=placed.workers), var, "all")
        if placed is REPLICATED and need is PARTIAL:
            return self._named(where(self._is_first, var, full_like(var, value=0.0, dtype=var.dtype)), var, "part")
        if placed is REPLICATED:
            return self._named(shard(var, axis=need.axis, workers=need.workers), var, "own")
        if placed is PARTIAL and var not in self.summed:
            self.count += 1
            return self._named(reduce_scatter(var, axis=need.axis, workers=need.workers), var, "own")
        return self.convert(self.convert(var, REPLICATED), need)

    @cached_property
    def _is_first(self) -> Var:
        """Whether this is the first worker: bool[]."""
        with written_into(self.program.main):
            index = worker_index()
            return equal(index, full_like(index, value=0.0, dtype=index.dtype))

    def _named(self, made: Var, var: Var, what: str) -> Var:
        made.block.rename(made, free_name(made.block, var.name, what))
        return made

    def _whole_splits(self, splits: Var) -> Var:
        lengths = sequence_lengths(splits)
        self.placed[lengths] = sharded()
        whole = self.convert(lengths, REPLICATED)
        zero = full(shape=Sizes((1,)), value=0.0, dtype=DType.INT64)
        return self._named(concat([zero, cumsum(whole, axis=0)], axis=0), splits, "all")

    def _find_rows(self) -> None:
        """Of each size that counts the rows of one worker, who tells it: the variables that have them."""
        for block in inner_blocks(self.program.main):
            for var in (*block.inputs, *(var for op in block.ops for var in op.writes)):
                placed = self.placed.get(var, REPLICATED)
                rows = rows_of(var, placed)
                if isinstance(rows, str):
                    self.rows.add_teller(rows, var, placed.axis if placed.by_rows else None)
                if placed.kind is not Kind.SPLITS:
                    self.rows.add_whole_teller(var, placed.axis if placed.by_rows else None)

    def _rename_sizes(self) -> None:
        """Call the sizes of what is whole by the names of the rows of all workers."""
        made = self.rows.made
        for block in inner_blocks(self.program.main):
            for var in block.vars.values():
                if var not in made:
                    self._rename_sizes_of(var)
            for op in block.ops:
                if op.writes and all(self.placed.get(var) is REPLICATED and var not in made for var in op.writes):
                    op.attributes = {
                        name: Sizes(tuple(rename(item, self._names) for item in value)) if isinstance(value, Sizes) else value
                        for name, value in op.attributes.items()
                    }

    def _rename_sizes_of(self, var: Var) -> None:
        placed = self.placed.get(var)
        if placed is not None and var.shape is not None and placed.kind is not Kind.SPLITS:
            own = placed.axis if placed.by_rows else None
            var.shape = tuple(item if axis == own else rename(item, self._names) for axis, item in enumerate(var.shape))

    @cached_property
    def _names(self) -> dict[str, Size]:
        return {str(rows): f"{rows}.all" for rows in self.rows.sizes if names_in(rows) == {rows}}

    # Ops that are written otherwise

    def define(
        self, op: Op, type: str, inputs: dict[str, Var], attributes: dict[str, object] | None = None, *, result: Var | None = None
    ) -> None:
        """Let another op define a result of `op`, its only one unless it is given."""
        (slot,) = standard.get(type).signature.outputs
        if result is None:
            (result,) = op.writes
        result.op = None
        given = {name: value for name, value in (attributes or {}).items() if value is not None}
        append_op(op.block, type, inputs, {slot.name: result}, given)


Way = Callable[[Writing, Op], None]
"""Writes an op otherwise."""


def _place_of(var: Var) -> tuple[Block, Role]:
    """The block of a variable, and the role of the op that computes it."""
    return var.block, var.op.role if var.op else Role.FORWARD


def _read_values(op: Op) -> list[Var]:
    """The variables whose values an op reads, and not their shapes alone."""
    if op.blocks:
        return list(op.reads)
    shapes = {slot.name for slot in standard.get(op.type).signature.inputs if slot.shape_only}
    return [var for slot, vars in op.inputs.items() if slot not in shapes for var in vars]


def _counted_from(first: Var, numbers: Var) -> Var:
    """Numbers of a worker's rows as numbers of the rows of all; -1, which stands for no row, as it is."""
    return where(less(numbers, constant_like(0, numbers)), numbers, add(numbers, first))


def _is_in_parts(var: Var, placement: Placement) -> bool:
    """Whether the rows of workers alternate along an axis, in several parts of it. Where there is no element, there are no parts either."""
    return placement.outer != 1 and 0 not in (var.shape or ())


def _bytes(var: Var) -> int:
    """How many bytes a value takes, as far as its sizes are numbers."""
    count = 1
    for item in var.shape or ():
        count *= item if isinstance(item, int) else 1
    return count * var.dtype.itemsize

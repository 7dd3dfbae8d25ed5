"""A block of gradients beside the forward block whose values it reads: what it computes again, and what it is still given."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from oarlock.ir.block import Block
from oarlock.ir.names import forward_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.size import Shape
from oarlock.ir.substitution import replace_reads
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import is_by_row
from oarlock.op.control.layout import Layout
from oarlock.passes.recomputation.copies import copy_with_blocks
from oarlock.registry.catalogue import Catalogue

__all__ = ["InnerLevel", "Level", "drop_unread_stacks", "find_owner", "is_gradient"]


def is_gradient(op: Op) -> bool:
    """Whether an op computes gradients: one of that role in the main block, any in a block of such an op."""
    return op.role is Role.BACKWARD or op.block.parent is not None


def find_owner(gradient: Op, around: Block) -> Op | None:
    """The op of the forward block `around` whose gradient `gradient` is, as the names of their blocks say; None for any other op."""
    if len(gradient.blocks) != 1 or "@" not in gradient.blocks[0].name:
        return None
    name = forward_name(gradient.blocks[0].name)
    return next((op for op in around.ops if op.blocks and op.role is Role.FORWARD and op.blocks[0].name == name), None)


class Level:
    """The values of the block `forward` that gradients in the block `into` read, of which they compute those in `recomputed` again.

    In the main block the two are one. A block inside belongs to `gradient`, the op of the gradient of the op `owner`; `around` is the level
    of the blocks around both.
    """

    def __init__(self, forward: Block, into: Block, catalogue: Catalogue, recomputed: AbstractSet[Var]):
        self.forward = forward
        self.into = into
        self.catalogue = catalogue
        self.recomputed = recomputed
        self.position = {op: number for number, op in enumerate(forward.ops)}
        self.copies: dict[Var, Var] = {}  # what is computed again -> that
        self.barriers: dict[Var, Var] = {}
        self.made: list[Op] = []  # the ops to stand before the op that is looked at
        self.inside: dict[Op, InnerLevel] = {}  # the levels of ops with blocks
        self.count = 0

    def rewrite(self) -> None:
        """Let the gradients compute again what is `recomputed`, each right before the first that reads it."""
        ops: list[Op] = []
        for op in self.into.ops:
            self.made = []
            if is_gradient(op):
                if op in self.inside:
                    self.inside[op].enter()
                    self.count += self.inside[op].count
                self._replace_reads(op)
            ops += [*self.made, op]
        self.into.ops = ops

    def read(self, var: Var) -> Var:
        """The variable by which a block of gradients inside, or an op, reads a value of `forward`, or of a block around that."""
        if var in self.recomputed:
            if var not in self.copies:
                self._compute(var)
            return self.copies[var]
        return self.kept(var)

    def kept(self, var: Var) -> Var:
        """The variable for what is kept."""
        return var

    def counterpart(self, var: Var) -> Var | None:
        """The forward variable whose value `var` holds; None where that is none."""
        return var if var.block is self.forward else None

    def _replace_reads(self, op: Op) -> None:
        whole = {var for slot, vars in op.inputs.items() if not self._asks_shape(op, slot) for var in vars}
        whole |= {value for value in op.attributes.values() if isinstance(value, Var)}
        replaced = {}
        for var in dict.fromkeys(op.reads):
            found = self.counterpart(var)
            if found is not None and found in self.recomputed:
                other = self.read(found) if var in whole else self.of_shape(var, found)
                if other is not var:
                    replaced[var] = other
        if replaced:
            op.inputs = {slot: tuple(replaced.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
            op.attributes = {name: replaced.get(value, value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
            for block in op.blocks:
                replace_reads(block, replaced)
            if op.blocks:
                Layout.of(op).write()

    def _asks_shape(self, op: Op, slot: str) -> bool:
        declared = self.catalogue.get(op.type).signature.input(slot)
        return declared is not None and declared.shape_only

    def of_shape(self, var: Var, found: Var) -> Var:
        """Some variable of the shape of `var`, which is all that is asked of it: `var`, since a plan keeps no value for its shape."""
        return var

    def _compute(self, var: Var) -> None:
        """Write the ops that compute `var` again of what is kept, with what of these is there already."""
        needed: set[Op] = set()
        pending = [var]
        while pending:
            op = pending.pop().op
            assert op is not None
            if op not in needed:
                needed.add(op)
                pending += [read for read in op.reads if read in self.recomputed and read not in self.copies]
        for op in sorted(needed, key=self.position.__getitem__):
            made, results = copy_with_blocks(op, self.into, self._operand)
            self.made.append(made)
            self.count += 1
            for original, copy in results.items():
                self.copies.setdefault(original, copy)

    def _operand(self, var: Var) -> Var:
        """The variable that an op which computes again reads: for floats that are kept, an alias that passes take for another value."""
        if var in self.copies:
            return self.copies[var]
        if var.block is not self.forward or var.persistable or not var.dtype.is_inexact:
            return self.read(var)
        if var not in self.barriers:
            kept = self.kept(var)
            alias = self.into.new_var(self.into.program.unique(f"{var.name.partition('@')[0]}@KEPT"), var.dtype, var.shape)
            barrier = Op(self.into, "optimization_barrier", {"x": (kept,)}, {"y": (alias,)}, {}, role=Role.BACKWARD, location=var.location)
            alias.op = barrier
            self.made.append(barrier)
            self.barriers[var] = alias
        return self.barriers[var]


class InnerLevel(Level):
    """The same inside the op `gradient`, which computes the gradient of the op `owner`."""

    def __init__(self, owner: Op, gradient: Op, around: Level, recomputed: AbstractSet[Var]):
        super().__init__(owner.blocks[0], gradient.blocks[0], around.catalogue, recomputed)
        self.owner = owner
        self.gradient = gradient
        self.around = around
        self.given: dict[Var, Var] = {}  # a variable of the forward block -> the input that holds it in the gradient's
        outside = Layout.of(owner)
        self.sources = {outer: inner for inner, outer in (*outside.steps, *outside.stacked)}
        for inner, outer in Layout.of(gradient).steps:
            found = around.counterpart(outer)
            if found is not None and found in self.sources:
                self.given.setdefault(self.sources[found], inner)
        self.held = {inner: var for var, inner in self.given.items()}
        self.dropped: set[Var | None] = set()  # the stacks that the gradient is not given any more

    def enter(self) -> None:
        """Rewrite the block of the gradient, and let it be given what it reads now, and no more."""
        before = self._read_inside()
        self.rewrite()
        unread = before - self._read_inside()
        layout = Layout.of(self.gradient)
        kept = [pair for pair in layout.steps if pair[0] not in unread]
        told = {outer.shape[0] for _, outer in kept if outer.shape}
        for inner, outer in layout.steps if has_trips(self.gradient) else ():
            if inner in unread and outer.shape and outer.shape[0] not in told:  # it alone tells how many there are
                told.add(outer.shape[0])
                kept.append((inner, outer))
        self.dropped = {self.around.counterpart(outer) for _, outer in layout.steps} - {self.around.counterpart(outer) for _, outer in kept}
        layout.steps = kept
        if "splits" in self.gradient.inputs:  # the first tells the rows that have a step
            layout.steps.sort(key=lambda pair: not is_by_row(pair[0], self.forward))
        layout.write()
        layout.body.keep(layout.body.ops)

    def _read_inside(self) -> set[Var]:
        return {var for op in walk(self.into) for var in op.reads} | set(self.into.outputs)

    def kept(self, var: Var) -> Var:
        if var.block is not self.forward:
            return self.around.read(var)
        if var not in self.given:
            inner = self.into.new_var(self.into.program.unique(f"{var.name.partition('@')[0]}@STEP"), var.dtype, var.shape)
            layout = Layout.of(self.gradient)
            layout.steps.append((inner, self.around.read(self._outside(var))))
            layout.write()
            self.given[var], self.held[inner] = inner, var
        return self.given[var]

    def counterpart(self, var: Var) -> Var | None:
        return self.held.get(var) if var.block is self.into else self.around.counterpart(var)

    def of_shape(self, var: Var, found: Var) -> Var:
        """An input that stays, or what is computed again: as a step of a stack, `var` would be kept."""
        alike = (inner for inner in self.into.inputs if (inner.dtype, inner.shape) == (var.dtype, var.shape))
        kept = next((inner for inner in alike if self.held.get(inner) not in self.recomputed), None)
        return self.read(found) if kept is None else kept

    def _outside(self, var: Var) -> Var:
        """The variable that holds the values of `var` around the owner: one whose parts its trips are given, or a stack."""
        layout = Layout.of(self.owner)
        found = next((outer for inner, outer in (*layout.steps, *layout.stacked) if inner is var), None)
        if found is not None:
            return found
        shape = find_stack_shape(layout, var)
        assert shape is not None, "kept only where it can be"
        block = self.owner.block
        stack = block.new_var(block.program.unique(f"{var.name}@STACK"), var.dtype, shape)
        stack.op = self.owner
        layout.stacked.append((var, stack))
        layout.write()
        return stack


def has_trips(op: Op) -> bool:
    """Whether what the block of `op` is given and returns has one dimension more outside."""
    return op.type != "conditional_block" or "when" in op.inputs


def find_stack_shape(layout: Layout, var: Var) -> Shape | None:
    """The shape of what holds `var` of each trip of an op with a block; None where nothing tells its first size."""
    if var.shape is None:
        return None
    if not has_trips(layout.op):
        return var.shape
    ragged = "splits" in layout.op.inputs
    if ragged and is_by_row(var, layout.body):
        return (layout.steps[0][1].shape[0], *var.shape[1:])  # type: ignore[index]
    pairs = (*layout.steps, *layout.stacked)
    alike: Iterable[Var] = (outer for inner, outer in pairs if outer.shape and not (ragged and is_by_row(inner, layout.body)))
    first = next(iter(alike), None)
    return None if first is None else (first.shape[0], *var.shape)  # type: ignore[index]


def drop_unread_stacks(levels: Iterable[InnerLevel]) -> None:
    """Let the forward ops of some levels, outer ones first, return no stack that gradients were given, where nothing reads it any more."""
    for level in levels:
        layout, block = Layout.of(level.owner), level.owner.block
        readers = {var for op in block.ops for var in op.reads} | set(block.outputs) | set(block.program.targets.values())
        unread = {outer for _, outer in layout.stacked if outer in level.dropped and outer not in readers}
        if unread:
            layout.stacked = [pair for pair in layout.stacked if pair[1] not in unread]
            layout.write()
            for var in unread:
                del block.vars[var.name]

"""A walk through a program that puts values in place of others: what the passes on single ops share."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator

__all__ = ["Visit", "declare", "is_elementwise", "is_pure", "new_op", "reader_counts", "rewrite", "sees"]

Visit = Callable[[Op, list[Op]], Mapping[Var, Var]]


def rewrite(program: Program, visit: Visit) -> int:
    """Visit every op in program order, those of a block after what stands before its owner; return how many ops lost a reader by it.

    `visit(op, before)` is given an op that already reads what was put in place of what it read. It may append ops to `before`, which then
    stand before this one, or in its place if they define what it does, and returns what is to be read in place of the op's outputs. The op
    itself stays otherwise, for those who fetch them: what nobody needs any more is for `remove_dead_code`. A block that has another
    variable of that name goes on reading the old one. One pass over the program, whatever is replaced.
    """
    return _Rewriting(visit).run(program)


class _Rewriting:
    def __init__(self, visit: Visit):
        self.visit = visit
        self.replaced: dict[Var, Var] = {}
        self.owner: dict[Var, Op] = {}  # a replaced variable -> the op that defines it
        self.passed_over: set[Op] = set()
        self.changed = 0  # how often something was put in place of an op, or before it

    def run(self, program: Program) -> int:
        self._block(program.main)
        program.changed()
        return len(self.passed_over)

    def _block(self, block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            self._update_reads(op)
            changed = self.changed
            for inner in op.blocks:
                self._block(inner)
            if op.blocks and (self.replaced or self.changed != changed):
                Layout.of(op).write()  # its blocks may read other variables of those around them
            before: list[Op] = []
            found = self.visit(op, before)
            self.changed += bool(found or before)
            ops += before
            if all(var.op is not made for made in before for var in op.writes):
                ops.append(op)
            self.replaced |= found
            self.owner |= dict.fromkeys(found, op)
        block.ops = ops
        if self.replaced:
            block.outputs = [self._read(var, block) for var in block.outputs]

    def _update_reads(self, op: Op) -> None:
        if not self.replaced:  # as in most passes over most programs
            return
        if op.is_commit and any(found.persistable for found in map(self.replaced.get, op.reads) if found is not None):
            return  # what is committed is a value of this step, though it be that of another persistable variable
        op.inputs = {slot: tuple(self._read(var, op.block) for var in vars) for slot, vars in op.inputs.items()}
        op.attributes = {name: self._read(value, op.block) if isinstance(value, Var) else value for name, value in op.attributes.items()}

    def _read(self, var: Var, block: Block) -> Var:
        found = self.replaced.get(var)
        if found is None or not sees(block, found):
            return var
        self.passed_over.add(self.owner[var])
        return found


def sees(block: Block, var: Var) -> bool:
    """Whether `block` may read `var` by its name: it is of this block or of one around it, and no nearer one has another of that name."""
    return var.block is block or block.find_var(var.name) is var


def reader_counts(program: Program) -> dict[Var, int]:
    """How often each variable is read, returned of its block, or wanted of the program."""
    counts: dict[Var, int] = {}
    reads = [var for op in walk(program.main) for var in op.reads]
    for var in (*reads, *(var for block in program.blocks for var in block.outputs), *program.targets.values()):
        counts[var] = counts.get(var, 0) + 1
    return counts


def is_pure(operator: Operator, op: Op) -> bool:
    """Whether `op` computes the same of the same inputs, and nothing else: no randomness, no run to ask, no block."""
    return not (operator.effects or operator.wants_context or op.blocks)


def is_elementwise(operator: Operator, op: Op) -> bool:
    """Whether every element of what `op` gives is computed of one element of each input, as its signature promises."""
    signature = operator.signature
    if not signature.inputs or operator.infer_function or not is_pure(operator, op):
        return False
    kinds = {slot.axes[0].kind if slot.axes and len(slot.axes) == 1 else None for slot in (*signature.inputs, *signature.outputs)}
    return kinds in ({"group"}, {"broadcast"})


def declare(like: Var, shape: Shape | None, mark: str = "", block: Block | None = None) -> Var:
    """A new variable of the dtype of `like`, with a name that tells what it comes from; of its block, where no other is given."""
    block = like.block if block is None else block
    mark = mark or ("SCALAR" if shape == () else "VALUE")
    return block.new_var(block.program.unique(f"{like.name.partition('@')[0]}@{mark}"), like.dtype, shape, location=like.location)


def new_op(
    op: Op,
    type: str,
    inputs: Mapping[str, Var],
    outputs: Mapping[str, Var],
    catalogue: Catalogue,
    attributes: Mapping[str, object] = MappingProxyType({}),
) -> Op:
    """An op that does part of what `op` did, where that stands. It defines `outputs`."""
    made = Op(
        op.block,
        type,
        {slot: (var,) for slot, var in inputs.items()},
        {slot: (var,) for slot, var in outputs.items()},
        catalogue.get(type).convert_attributes(attributes),
        role=op.role,
        location=op.location,
    )
    for var in made.writes:
        var.op = made
    return made

"""The gradient of an op that owns a block: a block of its own, and the op that runs it.

How a block corresponds to the block of its gradient (docs/internals, "the gradient of a loop is a loop"):
  an input of a step or a branch                becomes   an output
  an output                                               an input
  an initial memory                                       a final memory
  a captured variable                                     a sum over the iterations
  a value of the block that the gradient reads            another output of the forward op, and an input

`GradientBlock` keeps track of these pairs; the block operators define how their outputs are split into inputs of an iteration.
"""

from collections.abc import Collection, Mapping, Sequence

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import Shape, names_in
from oarlock.ir.var import Var, is_among
from oarlock.op.composed.row_gradients import as_table
from oarlock.op.control.even_sizes import even_sizes
from oarlock.op.elementwise import sum_
from oarlock.registry.gradient import Backward

__all__ = ["GradientBlock"]


class GradientBlock:
    """The block of a gradient during its construction from the forward op.

    `given` maps the inputs of the forward block that are steps of an outer value, or the value itself, to that value. The outputs of the
    forward op in `slot` begin at index `first` of its block's outputs.
    """

    def __init__(self, op: Op, backward: Backward, *, given: Mapping[Var, Var], slot: str, first: int = 0):
        self.op = op
        self.backward = backward
        self.forward: Block = op.attributes["body"]  # type: ignore[assignment]
        self.given = given
        self.slot = slot
        self.first = first
        self.taken: dict[Var, Var] = {}  # an outer value -> the input of an iteration for it
        self.constants: dict[Var, Var] = {}  # a constant of the forward block -> its copy in this block
        self.block = backward.into.program.new_block(self._block_name(), backward.into)

    def _block_name(self) -> str:
        program = self.backward.into.program
        stem, _, part = self.forward.name.partition(".")
        name = f"{stem}@GRAD"
        if not program.is_free(f"{name}.{part}"):
            name = program.unique(name)
        return f"{name}.{part}"

    def outside(self, shape: Shape) -> Shape:
        """Return the shape of an output of the op, for an output of its block of the given `shape`."""
        raise NotImplementedError

    @property
    def returned(self) -> list[Var]:
        """The variables of the forward block that are outputs of the op in `slot`, in order."""
        return self.forward.outputs[self.first : self.first + len(self.op.outputs[self.slot])]

    def arrived(self, slot: str, inner: list[Var]) -> list[tuple[Var, Var]]:
        """Return the variables in `slot` whose outer outputs have a gradient, each with that gradient."""
        pairs = ((var, self.backward.gradient_of(outer)) for var, outer in zip(inner, self.op.outputs[slot], strict=True))
        return [(var, gradient) for var, gradient in pairs if gradient is not None]

    def take(self, outer: Var, like: Var) -> Var:
        """Return the input of an iteration for `outer`, which is split like the stack of the forward block's variable `like`."""
        if outer not in self.taken:
            name = self.block.program.unique(f"{outer.name.partition('@')[0]}@STEP")
            self.taken[outer] = self.block.new_var(name, outer.dtype, like.shape)
        return self.taken[outer]

    def read(self, var: Var) -> Var:
        """Return the value of the forward block's `var` as a variable that the gradient's block can read."""
        if var.block is not self.forward:
            return self.backward.read(var)
        if var.op is not None and _is_constant(var.op):
            return self._constant(var)
        outer = self.given[var] if var in self.given else self._returned(var)
        return self.take(self.backward.read(outer), var)

    def _constant(self, var: Var) -> Var:
        """Return a copy of a constant: recomputing it is cheaper than keeping it for every iteration."""
        if var not in self.constants:
            assert var.op is not None
            made = self.block.new_var(self.block.program.unique(var.op.type), var.dtype, var.shape)
            (slot,) = var.op.outputs
            self.block.append(var.op.type, {}, {slot: [made]}, var.op.attributes)
            self.constants[var] = made
        return self.constants[var]

    def _returned(self, var: Var) -> Var:
        """Return the output of the forward op that holds the values of `var`: an existing one, or a new one."""
        inner = self.returned
        for inner_output, outer in zip(inner, self.op.outputs[self.slot], strict=True):
            if inner_output is var and not outer.stop_gradient:  # a second-order gradient flows through this read
                return outer
        assert var.shape is not None
        outer = self.op.block.new_var(self.op.block.program.unique(f"{var.name}@STACK"), var.dtype, self.outside(var.shape))
        outer.op = self.op
        self.forward.outputs.insert(self.first + len(inner), var)
        self.op.outputs = {**self.op.outputs, self.slot: (*self.op.outputs[self.slot], outer)}
        return outer

    def wanted(self) -> list[Var]:
        """Return the inputs of the forward block whose outer gradient is wanted and whose path does not stop."""
        return [var for var, outer in self.given.items() if self.backward.wants(outer) and not var.stop_gradient]

    def by_rows(self, found: Mapping[Var, Var | list[RowGradient]]) -> "tuple[dict[Var, Var], ReturnedRows]":
        """Split the gradients in `found`: those by rows that the block can return, and all others.

        If the number of rows differs between iterations, the gradient by rows becomes a table, computed in the block.
        """
        even = even_sizes(self.block.program.main)
        given = {inner: outer for outer, inner in self.taken.items()}
        whole: dict[Var, Var] = {}
        sparse: list[RowGradient] = []
        for table, gradient in found.items():
            if isinstance(gradient, Var):
                whole[table] = gradient
            elif all(self.is_stacked_evenly(each.rows, even) for each in gradient):
                sparse += gradient
            else:
                with self.block:
                    tables = [as_table(each) for each in gradient]
                    whole[table] = tables[0] if len(tables) == 1 else sum_(tables)
        return whole, ReturnedRows(sparse, given)

    def is_stacked_evenly(self, var: Var, even: Collection[str]) -> bool:
        """Return whether the output of the op for `var` is one tensor, if the size names in `even` have one value in the whole run."""
        return all(name in even for size in var.shape or () for name in names_in(size))


class ReturnedRows:
    """Gradients by rows that the block of a gradient returns. Row indices that were `given` to it are read outside instead."""

    def __init__(self, gradients: Sequence[RowGradient], given: Mapping[Var, Var]):
        self.gradients = gradients
        self.given = given
        self.returned = [var for each in gradients for var in (each.rows, each.values) if var not in given]

    def outside(self, outer: Sequence[Var]) -> list[tuple[Var, RowGradient]]:
        """Return the tables with their gradients, where `outer` are the outputs of the op for `returned`."""
        held = {**self.given, **dict(zip(self.returned, outer, strict=True))}
        gradients = [RowGradient(each.table, held[each.rows], held[each.values]) for each in self.gradients]
        for each in gradients:
            if is_among(each.values, outer):
                assert each.rows.shape is not None
                assert each.table.shape is not None
                each.values.shape = (*each.rows.shape, *each.table.shape[1:])  # one value per row index: no new size
        return [(each.table, each) for each in gradients]


def _is_constant(op: Op) -> bool:
    """Return whether an op reads nothing, so that it computes the same anywhere."""
    return op.type == "full" and not op.reads

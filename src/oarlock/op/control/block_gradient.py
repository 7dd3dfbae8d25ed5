"""The gradient of an op that owns a block: a block of its own, and the op that runs it.

Between a block and the block of its gradient (architecture of the project, "the gradient of a loop is a loop")

    what a step or a branch is given           becomes   what is returned
    what is returned                                   what is given
    an initial memory                                    a final memory
    a captured variable                                  a sum over the trips
    a value of the block that the gradient reads         one more output of the forward op, given here

`GradientBlock` keeps the books of that; the block operators say how their outputs are cut into what a trip sees.
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
    """The block of a gradient, while it is built from the forward op.

    `given` are the inputs of the forward block that are steps of a value outside, or the value itself, with that value. What the
    forward op returns in `slot` begins at number `first` of its block's outputs.
    """

    def __init__(self, op: Op, backward: Backward, *, given: Mapping[Var, Var], slot: str, first: int = 0):
        self.op = op
        self.backward = backward
        self.forward: Block = op.attributes["body"]  # type: ignore[assignment]
        self.given = given
        self.slot = slot
        self.first = first
        self.taken: dict[Var, Var] = {}  # a value outside -> what a trip is given of it
        self.constants: dict[Var, Var] = {}  # a constant of the forward block -> the same one here
        self.block = backward.into.program.new_block(self._block_name(), backward.into)

    def _block_name(self) -> str:
        program = self.backward.into.program
        stem, _, part = self.forward.name.partition(".")
        name = f"{stem}@GRAD"
        if not program.is_free(f"{name}.{part}"):
            name = program.unique(name)
        return f"{name}.{part}"

    def outside(self, shape: Shape) -> Shape:
        """The shape of what the op returns, where its block returns `shape`."""
        raise NotImplementedError

    @property
    def returned(self) -> list[Var]:
        """The variables of the forward block that the op returns in `slot`, in order."""
        return self.forward.outputs[self.first : self.first + len(self.op.outputs[self.slot])]

    def arrived(self, slot: str, inner: list[Var]) -> list[tuple[Var, Var]]:
        """The variables returned through `slot` to whose outer side a gradient has come, with it."""
        pairs = ((var, self.backward.gradient_of(outer)) for var, outer in zip(inner, self.op.outputs[slot], strict=True))
        return [(var, gradient) for var, gradient in pairs if gradient is not None]

    def take(self, outer: Var, like: Var) -> Var:
        """The input of an iteration that is taken from `outer`, which is cut as the stack of the forward block's variable `like` is."""
        if outer not in self.taken:
            name = self.block.program.unique(f"{outer.name.partition('@')[0]}@STEP")
            self.taken[outer] = self.block.new_var(name, outer.dtype, like.shape)
        return self.taken[outer]

    def read(self, var: Var) -> Var:
        """The value that the forward block gave `var`, where the gradient's block can read it."""
        if var.block is not self.forward:
            return self.backward.read(var)
        if var.op is not None and _is_constant(var.op):
            return self._constant(var)
        outer = self.given[var] if var in self.given else self._returned(var)
        return self.take(self.backward.read(outer), var)

    def _constant(self, var: Var) -> Var:
        """The same constant, made anew: dearer to keep for every trip than to make."""
        if var not in self.constants:
            assert var.op is not None
            made = self.block.new_var(self.block.program.unique(var.op.type), var.dtype, var.shape)
            (slot,) = var.op.outputs
            self.block.append(var.op.type, {}, {slot: [made]}, var.op.attributes)
            self.constants[var] = made
        return self.constants[var]

    def _returned(self, var: Var) -> Var:
        """The output of the forward op that holds what `var` was: one that is there, or one more."""
        inner = self.returned
        for handed, outer in zip(inner, self.op.outputs[self.slot], strict=True):
            if handed is var and not outer.stop_gradient:  # a gradient of this gradient goes through what is read here
                return outer
        assert var.shape is not None
        outer = self.op.block.new_var(self.op.block.program.unique(f"{var.name}@STACK"), var.dtype, self.outside(var.shape))
        outer.op = self.op
        self.forward.outputs.insert(self.first + len(inner), var)
        self.op.outputs = {**self.op.outputs, self.slot: (*self.op.outputs[self.slot], outer)}
        return outer

    def wanted(self) -> list[Var]:
        """The inputs of the forward block whose gradient is wanted outside, and which do not end the path."""
        return [var for var, outer in self.given.items() if self.backward.wants(outer) and not var.stop_gradient]

    def by_rows(self, found: Mapping[Var, Var | list[RowGradient]]) -> "tuple[dict[Var, Var], RowsHandedOut]":
        """The gradients that were `found`, apart from those by rows that the block can hand out.

        Where the number of rows is another in each trip, there is a table in their place, made here in the block.
        """
        even = even_sizes(self.block.program.main)
        given = {inner: outer for outer, inner in self.taken.items()}
        whole: dict[Var, Var] = {}
        handed_out: list[RowGradient] = []
        for table, gradient in found.items():
            if isinstance(gradient, Var):
                whole[table] = gradient
            elif all(self.is_stacked_evenly(each.rows, even) for each in gradient):
                handed_out += gradient
            else:
                with self.block:
                    tables = [as_table(each) for each in gradient]
                    whole[table] = tables[0] if len(tables) == 1 else sum_(tables)
        return whole, RowsHandedOut(handed_out, given)

    def is_stacked_evenly(self, var: Var, even: Collection[str]) -> bool:
        """Whether what the op returns for `var` is one tensor, where sizes with the names `even` are one number in the whole run."""
        return all(name in even for size in var.shape or () for name in names_in(size))


class RowsHandedOut:
    """Gradients by rows that the block of a gradient returns. Numbers that it was `given`, of a value outside, are read there."""

    def __init__(self, gradients: Sequence[RowGradient], given: Mapping[Var, Var]):
        self.gradients = gradients
        self.given = given
        self.returned = [var for each in gradients for var in (each.rows, each.values) if var not in given]

    def outside(self, outer: Sequence[Var]) -> list[tuple[Var, RowGradient]]:
        """The tables with their gradients, where `outer` is what the op gives for `returned`."""
        held = {**self.given, **dict(zip(self.returned, outer, strict=True))}
        gradients = [RowGradient(each.table, held[each.rows], held[each.values]) for each in self.gradients]
        for each in gradients:
            if is_among(each.values, outer):
                assert each.rows.shape is not None
                assert each.table.shape is not None
                each.values.shape = (*each.rows.shape, *each.table.shape[1:])  # one for each number: no new size
        return [(each.table, each) for each in gradients]


def _is_constant(op: Op) -> bool:
    """Whether an op reads nothing, so that it gives the same wherever it stands."""
    return op.type == "full" and not op.reads

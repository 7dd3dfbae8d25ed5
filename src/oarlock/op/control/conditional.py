"""A block that runs once or, depending on a condition, not at all."""

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import Shape
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.op.control.block_gradient import GradientBlock
from oarlock.op.control.layout import flow_of
from oarlock.op.reduction import reduce_sum
from oarlock.op.trusted_operator import operator
from oarlock.registry.gradient import Backward
from oarlock.registry.signature import TensorType
from oarlock.registry.value_sizes import BlockSizes, predict_size
from oarlock.tensor.stacks import Stack, stack

__all__ = ["conditional_block"]


@operator("*values: any, *free: any, when?: bool[] -> *outputs: any")
def conditional_block(context, values, free, when=None, *, body: Block):
    """Run ``body`` once, in a scope of its own.

    It receives ``values`` and returns the outputs; ``free`` are the outer variables that it reads. With ``when``, it runs only if ``when``
    is true, and all inputs and outputs have a first axis, ``[ran *d]``, of size 1 if it ran and 0 if not. ``select_branch`` picks the value
    of the branch that ran.
    """
    if when is None:
        return context.run_block(body, values)
    require_ran(bool(when), *values)
    if not when:
        return [context.zeros(var, leading=(0,)) for var in body.outputs]
    return [stack([value]) for value in context.run_block(body, [value[0] for value in values])]


def require_ran(ran: bool, *values: Stack) -> None:
    """Raise ValueError unless each value has one row if the branch runs, and none if it does not."""
    for value in values:
        if len(value) != ran:
            raise ValueError(
                f"a value of {len(value)} row{'' if len(value) == 1 else 's'}, but the block {'runs' if ran else 'does not run'}"
            )


@conditional_block.infer_shape
def branch_types(values, free, when, *, body):
    if len(body.inputs) != len(values):
        raise ShapeError(f"the body takes {len(body.inputs)} values, but receives {len(values)}")
    for var, type in zip(body.inputs, values, strict=True):
        if when is not None and not type.shape:
            raise ShapeError(f'"{var.name}" receives {type}, which needs a first axis of size 1 or 0')
        received = type if when is None else TensorType(type.dtype, type.shape[1:])
        if (var.dtype, var.shape) != received:
            raise ShapeError(f'the body takes "{var.name}" as {var.type_text}, but receives {received}')
    types = [TensorType(var.dtype, var.shape) for var in body.outputs]
    if when is None:
        return types
    if any(type.shape is None for type in types):
        raise ShapeError("the body returns a value of unknown rank")
    return [TensorType(type.dtype, ("?ran", *type.shape)) for type in types]  # type: ignore[misc]


def branch_sizes(op: Op) -> BlockSizes | None:
    """Return the sizes that depend on the condition: each value has one row if the branch runs, else none."""
    return BlockSizes(frozenset(var.shape[0] for var in op.inputs["values"] if var.shape)) if op.inputs.get("when") else None


conditional_block.block_sizes = branch_sizes
conditional_block.block_flow = flow_of


@predict_size(conditional_block, bounded=True)
def branch_ran(values, free, when=None, *, body):
    return 1 if when is None or when else 0


@conditional_block.gradient_maker
def branch_gradients(op: Op, backward: Backward) -> list[tuple[Var, Var | RowGradient]]:
    """Build the branch of the gradient; return each input with its gradient."""
    return _BranchGradient(op, backward).build()


class _BranchGradient(GradientBlock):
    """The construction of one gradient branch, from the forward branch `op`."""

    def __init__(self, op: Op, backward: Backward):
        body: Block = op.attributes["body"]  # type: ignore[assignment]
        super().__init__(op, backward, given=dict(zip(body.inputs, op.inputs["values"], strict=True)), slot="outputs")
        self.when = op.inputs.get("when", (None,))[0]

    def build(self) -> list[tuple[Var, Var | RowGradient]]:
        """Append the branch; return each input of the forward branch that has a gradient, with it."""
        with self.block:
            seeds = [(var, self.take(gradient, var)) for var, gradient in self.arrived("outputs", self.returned)]
            free = [var for var in self.op.inputs["free"] if self.backward.wants(var)]
            found, rows = self.by_rows(self.backward.differentiate(self.forward.ops, self.block, seeds, [*self.wanted(), *free], self.read))
        if not found and not rows.gradients:
            self.block.program.discard_block(self.block)
            return []
        values = [var for var in self.wanted() if var in found]
        for var in values if self.when is not None else ():
            self.read(var)  # it ran if the forward branch ran: its gradient has no new size
        free = [var for var in free if var in found]
        self.block.inputs = list(self.taken.values())
        self.block.outputs = [*(found[var] for var in (*values, *free)), *rows.returned]
        when = None if self.when is None else self.backward.read(self.when)
        gradients = conditional_block(list(self.taken), free_vars(self.block), when, body=self.block)
        for var, gradient in zip(values, gradients, strict=False):
            gradient.shape = self.given[var].shape
        count = len(values) + len(free)
        of_values, of_free, by_rows = gradients[: len(values)], gradients[len(values) : count], gradients[count:]
        if when is not None:
            of_free = [reduce_sum(gradient, axis=0) for gradient in of_free]
        pairs = [*zip((self.given[var] for var in values), of_values, strict=True), *zip(free, of_free, strict=True)]
        return [*pairs, *rows.outside(by_rows)]

    def outside(self, shape: Shape) -> Shape:
        if self.when is None:
            return shape
        outputs = self.op.outputs["outputs"]
        return (outputs[0].shape[0] if outputs else self.op.block.program.unique("size"), *shape)  # type: ignore[index]

"""A block that runs as long as a condition is true."""

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.var import Var
from oarlock.op.control.layout import flow_of
from oarlock.op.control.loop_gradient import LoopGradient
from oarlock.op.trusted_operator import operator
from oarlock.registry.gradient import Backward
from oarlock.registry.signature import TensorType
from oarlock.tensor.stacks import Stack, stack

__all__ = ["require_trips", "while_"]


@operator("condition: bool[], *initial: any, *free: any -> *stacked: any, *final: any", checks_values=True)
def while_(context, condition, initial, free, *, body: Block, max_trips: int = 0):
    """Run ``body``, each iteration in a scope of its own, as long as the condition is true.

    The body receives the carried values, at first ``initial``, and returns the next condition, ``bool[]``, then the values to stack, then
    the next carried values. ``free`` are the outer variables that the body reads. Stacks have a row per iteration, ``[trips *d]``; without
    iterations they are empty and carried values keep their initial ones. Raises KernelError if the condition is still true after
    ``max_trips`` iterations; 0 means unlimited. The gradient is a ``recurrent`` over the stacked values.
    """
    stacked = len(body.outputs) - 1 - len(initial)
    carried = list(initial)
    stacks: list[list[Stack]] = [[] for _ in range(stacked)]
    trip = 0
    while condition:
        require_trips(trip, max_trips)
        condition, *outputs = context.run_block(body, carried, trip=trip)
        carried = outputs[stacked:]
        context.will_stack(outputs[:stacked])
        for values, value in zip(stacks, outputs, strict=False):
            values.append(value)
        trip += 1
    if not trip:
        return [context.zeros(var, leading=(0,)) for var in body.outputs[1 : 1 + stacked]], carried
    context.leave(body.inputs, carried)
    return [stack(values) for values in stacks], carried


def require_trips(trip: int, max_trips: int) -> None:
    """Raise ValueError if a loop has reached its limit of iterations."""
    if max_trips and trip == max_trips:
        raise ValueError(f"the condition is still true after max_trips={max_trips} iterations")


@while_.infer_shape
def while_types(condition, initial, free, *, body, max_trips):
    if max_trips < 0:
        raise ShapeError(f"max_trips must be at least 1, or 0 for no limit, not {max_trips}")
    if len(body.inputs) != len(initial):
        raise ShapeError(f"the body takes {len(body.inputs)} values, but {len(initial)} are carried")
    if len(body.outputs) < 1 + len(initial):
        raise ShapeError(f"the body returns {len(body.outputs)} values, too few for a condition and {len(initial)} carried values")
    types = [TensorType(var.dtype, var.shape) for var in body.outputs]
    following = types[len(types) - len(initial) :]
    if types[0] != TensorType(DType.BOOL, ()):
        raise ShapeError(f"the next condition must be bool[], not {types[0]}")
    for number, (var, before, after) in enumerate(zip(body.inputs, initial, following, strict=True)):
        if (var.dtype, var.shape) != before:
            raise ShapeError(f'the body takes "{var.name}" as {var.type_text}, but receives {before}')
        if before != after:
            raise ShapeError(f"carried value {number} begins as {before} but continues as {after}")
    stacked = types[1 : len(types) - len(initial)]
    if any(type.shape is None for type in stacked):
        raise ShapeError("the body returns a value of unknown rank, whose iterations cannot be stacked")
    return [TensorType(type.dtype, ("?trips", *type.shape)) for type in stacked], list(initial)  # type: ignore[misc]


@while_.gradient_maker
def while_gradients(op: Op, backward: Backward) -> list[tuple[Var, Var | RowGradient]]:
    """Build the loop over the iterations in reverse; return each input with its gradient."""
    body: Block = op.attributes["body"]  # type: ignore[assignment]
    carried = body.inputs
    following = body.outputs[len(body.outputs) - len(carried) :]
    return LoopGradient(op, backward, steps={}, memories=carried, following=following, sums=[], reverse=True, first=1).build()


while_.block_flow = flow_of

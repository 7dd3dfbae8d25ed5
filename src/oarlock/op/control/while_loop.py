"""A block that runs as long as a condition holds."""

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
    """Run ``body``, each trip in a scope of its own, as long as the condition holds.

    The body takes the carried values, which are ``initial`` at first, and returns the next condition, ``bool[]``, then what is
    stacked, then the next carried values. ``free`` are the variables around the loop that the body reads. Stacks have
    a row per trip, ``[trips *d]``; without a trip they are empty and carried values keep their initial ones. Raises where the
    condition still holds after ``max_trips`` trips, unless that is 0. The gradient is a ``recurrent`` over what each trip returned.
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
    """Raises ValueError where a loop has made all the trips that it may."""
    if max_trips and trip == max_trips:
        raise ValueError(f"the condition still holds after max_trips={max_trips} trips")


@while_.infer_shape
def while_types(condition, initial, free, *, body, max_trips):
    if max_trips < 0:
        raise ShapeError(f"max_trips is a number of trips, or 0 for no limit, not {max_trips}")
    if len(body.inputs) != len(initial):
        raise ShapeError(f"the body takes {len(body.inputs)} values, yet {len(initial)} are carried")
    if len(body.outputs) < 1 + len(initial):
        raise ShapeError(f"the body returns {len(body.outputs)} values, too few for a condition and {len(initial)} carried values")
    types = [TensorType(var.dtype, var.shape) for var in body.outputs]
    following = types[len(types) - len(initial) :]
    if types[0] != TensorType(DType.BOOL, ()):
        raise ShapeError(f"the next condition is bool[], not {types[0]}")
    for number, (var, before, after) in enumerate(zip(body.inputs, initial, following, strict=True)):
        if (var.dtype, var.shape) != before:
            raise ShapeError(f'the body takes "{var.name}" as {var.type_text}, yet is handed {before}')
        if before != after:
            raise ShapeError(f"carried value {number} begins as {before} but goes on as {after}")
    stacked = types[1 : len(types) - len(initial)]
    if any(type.shape is None for type in stacked):
        raise ShapeError("the body returns a value of unknown rank, and trips of that cannot be stacked")
    return [TensorType(type.dtype, ("?trips", *type.shape)) for type in stacked], list(initial)  # type: ignore[misc]


@while_.gradient_maker
def while_gradients(op: Op, backward: Backward) -> list[tuple[Var, Var | RowGradient]]:
    """Build the loop back over the trips; return each input with its gradient."""
    body: Block = op.attributes["body"]  # type: ignore[assignment]
    carried = body.inputs
    following = body.outputs[len(body.outputs) - len(carried) :]
    return LoopGradient(op, backward, steps={}, memories=carried, following=following, sums=[], reverse=True, first=1).build()


while_.block_flow = flow_of

"""Transfers of values between the devices of a run."""

from oarlock.errors import ArgumentError
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.stacks import brought

__all__ = ["move"]


@operator(
    "x: T[*b] -> y: T[*b]",
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], place=0, y=[1.0, 2.0]),
        GradCheck(x=(2, 3), place=0),
        Rejects("place must be at least 0, not -1", x=(2,), place=-1),
    ],
)
def move(context, x, *, place: int):
    """``x`` on the device with the index ``place``, of the devices of the run; ``x`` itself if it is there already.

    Ops that depend on it alone run there too. An executor inserts moves if an op reads a value on another device than the op's parameters.
    A run with one device computes everything on it and moves nothing.
    """
    return brought(x, context.device(place))


@move.infer_shape
def move_shape(x, *, place):
    if place < 0:
        raise ArgumentError(f"place must be at least 0, not {place}")
    return x.shape


move.gradient_programs(x=lambda dy: dy)

"""Values moved from one place of a run to another."""

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
        Rejects("the number of a place is from 0, not -1", x=(2,), place=-1),
    ],
)
def move(context, x, *, place: int):
    """``x`` at the place with this number, of those that the run is given; ``x`` itself where it lies there already.

    What is computed of it alone runs there too. An executor writes moves by itself, wherever an op reads what lies at another place than
    the parameters of the op. A run that has one place computes everything there, and moves nothing.
    """
    return brought(x, context.device(place))


@move.infer_shape
def move_shape(x, *, place):
    if place < 0:
        raise ArgumentError(f"the number of a place is from 0, not {place}")
    return x.shape


move.gradient_programs(x=lambda dy: dy)

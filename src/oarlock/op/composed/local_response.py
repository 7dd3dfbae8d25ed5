"""Local response normalization: each channel normalized by the squares of neighbouring channels."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.composed.shape import known_shape
from oarlock.op.elementwise import add, divide, multiply
from oarlock.op.padding import pad
from oarlock.op.powers import power
from oarlock.op.rearrangement import windows
from oarlock.op.reduction import reduce_sum
from oarlock.op.unary import square
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["local_response_norm"]


def local_response_norm(x: Var, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Var:
    """``x / (k + alpha m)**beta``, with ``m`` the mean square of ``size`` neighbouring channels, zeros beyond: float[n c ...s].

    Krizhevsky, Sutskever and Hinton, 2012. Raises ShapeError or ArgumentError.
    """
    x = require_type(x, "local_response_norm: x")
    rank = len(known_shape(x, "local_response_norm"))
    if rank < 2:
        raise ShapeError(f"local_response_norm: x must be float[n c ...s], not {x.type_text}", location=here(), given=[x.describe()])
    require_count("local_response_norm: size", size)
    with undone_on_error(x.block.program):
        rest = (0,) * (rank - 2)
        squares = pad(square(x), before=(size // 2, *rest), after=((size - 1) // 2, *rest))
        sums = reduce_sum(windows(squares, axis=1, size=size), axis=-1)
        return divide(x, power(add(multiply(sums, alpha / size), k), beta))

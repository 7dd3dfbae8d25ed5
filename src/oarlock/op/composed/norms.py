"""Vector norms, standard deviations and local response normalization. The gradient of a norm of 0 is 0, as in PyTorch."""

import math
from collections.abc import Callable

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal, not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.shape import known_shape
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, clip, divide, multiply
from oarlock.op.extremes import amax, amin
from oarlock.op.magnitude import abs_
from oarlock.op.padding import pad
from oarlock.op.powers import power
from oarlock.op.rearrangement import windows
from oarlock.op.reduction import reduce_sum
from oarlock.op.statistics import variance
from oarlock.op.unary import sqrt, square
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["as_dtype_of", "but_at_zero", "local_response_norm", "normalize", "standard_deviation", "vector_norm"]


Axes = int | tuple[int, ...] | None


def vector_norm(x: Var, *, order: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Var:
    """The norm ``(sum |x|**order)**(1 / order)`` over one axis, several, or all. It is a real number, for complex ones, too.

    An infinite order gives the largest ``|x|``, order 0 the number of elements that are not 0. Raises the errors of the operators.
    """
    with undone_on_error(require_type(x, "vector_norm: x").block.program):
        x = abs_(x) if x.dtype.is_complex else x
        if order == math.inf:
            return amax(abs_(x), axis=axis, keepdim=keepdim)
        if order == -math.inf:
            return amin(abs_(x), axis=axis, keepdim=keepdim)
        if order == 0.0:
            return reduce_sum(cast(not_equal(x, constant_like(0.0, x)), dtype=x.dtype), axis=axis, keepdim=keepdim)
        if order == 1.0:
            return reduce_sum(abs_(x), axis=axis, keepdim=keepdim)
        if order == 2.0:
            return but_at_zero(reduce_sum(square(x), axis=axis, keepdim=keepdim), sqrt)
        length, root = constant_like(order, x), constant_like(1.0 / order, x)
        powers = but_at_zero(abs_(x), lambda size: power(size, length)) if order > 0.0 else power(abs_(x), length)
        total = reduce_sum(powers, axis=axis, keepdim=keepdim)
        return but_at_zero(total, lambda value: power(value, root)) if order > 0.0 else power(total, root)


def but_at_zero(x: Var, function: Callable[[Var], Var]) -> Var:
    """Return ``function(x)``, which is 0 and steep at 0, with a gradient of 0 there."""
    zero = constant_like(0.0, x)
    still = equal(x, zero)
    return where(still, zero, function(where(still, constant_like(1.0, x), x)))


def as_dtype_of(x: Var, y: Var) -> Var:
    """Return the real ``y``, as complex numbers if ``x`` is complex."""
    return cast(y, dtype=x.dtype) if x.dtype.is_complex else y


def normalize(x: Var, *, order: float = 2.0, axis: Axes = 1, epsilon: float = 1e-12) -> Var:
    """``x`` divided by its `vector_norm` over one axis or several, which is raised to at least ``epsilon``."""
    with undone_on_error(require_type(x, "normalize: x").block.program):
        norm = vector_norm(x, order=order, axis=axis, keepdim=True)
        return divide(x, as_dtype_of(x, clip(norm, constant_like(epsilon, norm))))


def standard_deviation(x: Var, *, axis: Axes = None, keepdim: bool = False, correction: float = 1.0) -> Var:
    """The standard deviation: the square root of the `variance`, with the same arguments."""
    with undone_on_error(require_type(x, "standard_deviation: x").block.program):
        return but_at_zero(variance(x, axis=axis, keepdim=keepdim, correction=correction), sqrt)


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

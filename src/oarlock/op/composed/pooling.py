"""Max pooling with indices, its inverse, and power-average pooling."""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.size import multiply as times
from oarlock.ir.var import Var
from oarlock.op.adaptive_pooling import adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d
from oarlock.op.along_axis import scatter_along_axis
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.composition import composition
from oarlock.op.composed.norms import but_at_zero
from oarlock.op.composed.shape import known_shape
from oarlock.op.creation import full
from oarlock.op.elementwise import multiply
from oarlock.op.manipulation import reshape
from oarlock.op.pooling import average_pool1d, average_pool2d, average_pool3d, max_pool1d, max_pool2d, max_pool3d
from oarlock.op.powers import power
from oarlock.op.told_shape import broadcast_to

__all__ = ["adaptive_max_pool_with_indices", "lp_pool", "max_pool_with_indices", "max_unpool"]

Numbers = tuple[int, ...]

_MAX = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVERAGE = {1: average_pool1d, 2: average_pool2d, 3: average_pool3d}
_ADAPTIVE = {1: adaptive_max_pool1d, 2: adaptive_max_pool2d, 3: adaptive_max_pool3d}


def _axes(x: Var, what: str) -> int:
    """Return the number of axes after the channels. Raises ShapeError unless it is one, two or three."""
    axes = len(known_shape(x, what)) - 2
    if not 1 <= axes <= 3:
        raise ShapeError(f"{what}: x must have images, channels, and one to three axes", location=here(), given=[x.describe()])
    return axes


@composition
def max_pool_with_indices(
    x: Var, *, size: Numbers, stride: Numbers | None = None, padding: Numbers | None = None, dilation: Numbers | None = None,
    ceil_mode: bool = False,
) -> tuple[Var, Var]:  # fmt: skip
    """The largest value in each window of each channel of float[n c ...s], and its flat position in ``s``, int64.

    ``stride`` defaults to the size of a window. Raises ShapeError.
    """
    axes = _axes(x, "max_pool_with_indices")
    y = _MAX[axes](x, size=size, stride=size if stride is None else stride, padding=padding or (0,) * axes,
                   dilation=dilation or (1,) * axes, ceil_mode=ceil_mode)  # fmt: skip
    return y, y.op.outputs["index"][0]


@composition
def adaptive_max_pool_with_indices(x: Var, *, size: Numbers) -> tuple[Var, Var]:
    """The largest value in each of ``size`` windows, as even as possible, and its flat position, as in `max_pool_with_indices`."""
    y = _ADAPTIVE[_axes(x, "adaptive_max_pool_with_indices")](x, size=size)
    return y, y.op.outputs["index"][0]


@composition
def max_unpool(x: Var, index: Var, *, size: Numbers) -> Var:
    """Images of ``size`` with the values of ``x`` at the flat positions ``index`` and zeros elsewhere (Zeiler and Fergus, 2014).

    If a position repeats, one of its values is kept. A position out of range raises KernelError.
    """
    axes = _axes(x, "max_unpool")
    if len(size) != axes or min(size) < 0:
        raise ArgumentError(
            f"max_unpool: size must have {axes} numbers of at least 0, not {tuple(size)}", location=here(), given=[x.describe()]
        )
    if index.shape != x.shape:
        raise ShapeError("max_unpool: index must have the shape of x", location=here(), given=[x.describe(), index.describe()])
    n, c, *sizes = known_shape(x, "max_unpool")
    row = (n, c, math.prod(size))
    count = 1
    for each in sizes:
        count = times(count, each)
    zeros = broadcast_to(full(shape=(), value=0.0, dtype=x.dtype), [x], shape=row)
    flat = scatter_along_axis(zeros, reshape(index, shape=(n, c, count)), reshape(x, shape=(n, c, count)), axis=2)
    return reshape(flat, shape=(n, c, *size))


@composition
def lp_pool(x: Var, *, order: float, size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False) -> Var:
    """``(sum x**order)**(1 / order)`` over each window of each channel: sum pooling for order 1, near max pooling for a large order."""
    axes = _axes(x, "lp_pool")
    if not order > 0.0:
        raise ArgumentError(f"lp_pool: order must be above 0, not {order}", location=here(), given=[x.describe()])
    means = _AVERAGE[axes](power(x, constant_like(order, x)), size=size, stride=size if stride is None else stride, ceil_mode=ceil_mode)
    total, root = multiply(means, constant_like(math.prod(size), x)), constant_like(1.0 / order, x)
    return but_at_zero(total, lambda value: power(value, root))

"""Diagonals of matrices: created, read, written and summed."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.size import Size, add
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.axes import moveaxis
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full
from oarlock.op.elementwise import add as add_up
from oarlock.op.manipulation import reshape
from oarlock.op.padding import pad
from oarlock.op.rearrangement import diagonal
from oarlock.op.reduction import reduce_sum
from oarlock.op.told_shape import arange, broadcast_to

__all__ = ["diag", "diag_embed", "diagflat", "diagonal_scatter", "trace"]


@composition
def diag(x: Var, *, offset: int = 0) -> Var:
    """A matrix with the diagonal ``x`` for a row ``x``, or the diagonal of a matrix ``x``. Offset 0 is the main one, 1 the one above it."""
    rank = len(known_shape(x, "diag"))
    if rank not in (1, 2):
        raise ShapeError(f"diag: x must be a row or a matrix, but has {rank} axes", location=here(), given=[x.describe()])
    return diag_embed(x, offset=offset) if rank == 1 else diagonal(x, offset=offset)


@composition
def diagflat(x: Var, *, offset: int = 0) -> Var:
    """A matrix whose diagonal is all elements of ``x``, in order."""
    return diag_embed(reshape(x, shape=(-1,)), offset=offset)


@composition
def diag_embed(x: Var, *, offset: int = 0, axes: tuple[int, int] = (-2, -1)) -> Var:
    """Matrices, along two axes of the result, whose diagonals are the rows of ``x``, T[*b n]; zeros elsewhere. Raises ShapeError."""
    shape = known_shape(x, "diag_embed")
    if not shape:
        raise ShapeError("diag_embed: x must have rows, but is a number", location=here(), given=[x.describe()])
    rank = len(shape) + 1
    if len(axes) != 2 or any(not -rank <= axis < rank for axis in axes) or axes[0] % rank == axes[1] % rank:
        raise ShapeError(f"diag_embed: axes {axes} are not two of the {rank} axes of the result", location=here(), given=[x.describe()])
    ends = (max(offset, 0), max(-offset, 0))
    rows = pad(x, before=(ends[1],), after=(ends[0],)) if offset else x
    embedded = where(_on_diagonal(x, add(shape[-1], abs(offset)), offset), unsqueeze(rows, -1), _zero(x))
    return moveaxis(embedded, (-2, -1), axes)


def _on_diagonal(x: Var, rows: Size, offset: int, columns: Size | None = None) -> Var:
    """Return a mask of the diagonal of a matrix: bool[rows columns]. ``x`` provides the values of symbols."""
    down = arange([x], stop=(rows,))
    right = arange([x], stop=(rows if columns is None else columns,))
    return equal(unsqueeze(add_up(down, constant_like(offset, down)), 1), unsqueeze(right, 0))


def _zero(x: Var) -> Var:
    return full(shape=(), value=0.0, dtype=x.dtype)


@composition
def diagonal_scatter(x: Var, values: Var, *, offset: int = 0, axes: tuple[int, int] = (0, 1)) -> Var:
    """``x`` with ``values`` written to a diagonal of two axes; they have the shape that `diagonal` returns. Raises ShapeError."""
    wanted = diagonal(x, offset=offset, axes=axes).shape
    if values.shape != wanted:
        raise ShapeError(
            f"diagonal_scatter: values do not fill the diagonal, {list(wanted or ())}",
            location=here(),
            given=[x.describe(), values.describe()],
        )
    last = moveaxis(x, axes, (-2, -1))
    *front, rows, columns = known_shape(last, "diagonal_scatter")
    length = known_shape(values, "diagonal_scatter")[-1]
    before = max(-offset, 0)
    after = max(offset, 0) if isinstance(rows, str) or isinstance(length, str) else rows - before - length
    padded = pad(values, before=(before,), after=(after,)) if length != 0 else broadcast_to(_zero(x), [last], shape=(*front, rows))
    found = where(_on_diagonal(last, rows, offset, columns), unsqueeze(padded, -1), last)
    return moveaxis(found, (-2, -1), axes)


@composition
def trace(x: Var) -> Var:
    """The sum of the diagonal of each matrix: T[*b n m] -> T[*b]. Raises ShapeError."""
    return reduce_sum(diagonal(x), axis=-1)

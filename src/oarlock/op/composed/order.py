"""Order along any axis, and the unit matrix: compositions of operators that know one way."""

from oarlock.ir.dtype import DType
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.comparison import equal
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add
from oarlock.op.manipulation import transpose
from oarlock.op.selection import top_k
from oarlock.op.sorting import sort
from oarlock.op.told_shape import arange, narrow
from oarlock.registry.creator import require_type

__all__ = ["argsort", "eye", "top_k_along"]


def argsort(x: Var, *, axis: int = -1, descending: bool = False) -> Var:
    """Where the elements along ``axis`` stand that `sort` gives: number[...s] -> int64[...s]."""
    return sort(x, axis=axis, descending=descending)[1]


def top_k_along(x: Var, k: int, *, axis: int = -1, largest: bool = True) -> tuple[Var, Var]:
    """The ``k`` largest or smallest elements along ``axis``, in their order, and where they stand. Raises ShapeError."""
    x = require_type(x, "top_k_along: x")
    rank, at = len(known_shape(x, "top_k_along")), require_axis(known_shape(x, "top_k_along"), axis)
    with undone_on_error(x.block.program):
        if not largest:
            values, indices = sort(x, axis=at)
            return narrow(values, [], axis=at, length=(k,)), narrow(indices, [], axis=at, length=(k,))
        if at == rank - 1:
            return top_k(x, k=k)
        order = (*(other for other in range(rank) if other != at), at)
        back = tuple(order.index(other) for other in range(rank))
        values, indices = top_k(transpose(x, axes=order), k=k)
        return transpose(values, axes=back), transpose(indices, axes=back)


def eye(*like: Var, rows: Size, columns: Size | None = None, offset: int = 0, dtype: DType | str = DType.FLOAT32) -> Var:
    """Ones on a diagonal, zeros beside it: {dtype}[rows columns]. The variables ``like`` tell sizes that are symbols."""
    row = arange(list(like), stop=(rows,))
    column = arange(list(like), stop=(rows if columns is None else columns,))
    return cast(equal(unsqueeze(add(row, offset), 1), unsqueeze(column, 0)), dtype=dtype)

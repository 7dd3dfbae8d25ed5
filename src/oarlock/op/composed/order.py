"""Indices of sorted elements, the largest elements along an axis, and the identity matrix."""

from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.comparison import equal
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add
from oarlock.op.selection import top_k
from oarlock.op.sorting import sort
from oarlock.op.told_shape import arange

__all__ = ["argsort", "eye", "top_k_along"]


def argsort(x: Var, *, axis: int = -1, descending: bool = False) -> Var:
    """The indices that sort ``x`` along ``axis``, as returned by `sort`: real[...s] -> int64[...s]."""
    return sort(x, axis=axis, descending=descending)[1]


def top_k_along(x: Var, k: int, *, axis: int = -1, largest: bool = True) -> tuple[Var, Var]:
    """The ``k`` largest or smallest elements along ``axis``, in order, and their indices, by `top_k`. Raises ShapeError."""
    return top_k(x, k=k, axis=axis, largest=largest)


def eye(*like: Var, rows: Size, columns: Size | None = None, offset: int = 0, dtype: DType | str = DType.FLOAT32) -> Var:
    """Ones on a diagonal, zeros elsewhere: {dtype}[rows columns]. The variables ``like`` provide the values of symbols."""
    row = arange(list(like), stop=(rows,))
    column = arange(list(like), stop=(rows if columns is None else columns,))
    return cast(equal(unsqueeze(add(row, offset), 1), unsqueeze(column, 0)), dtype=dtype)

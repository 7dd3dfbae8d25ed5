"""Sparse gradients by rows: their sum, and as a table."""

from collections.abc import Sequence

from oarlock.ir.attribute import Sizes
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import product
from oarlock.ir.var import Var
from oarlock.op.indexing import scatter_add
from oarlock.op.manipulation import concat, reshape

__all__ = ["as_table", "joined"]


def as_table(gradient: RowGradient, table: Var | None = None) -> Var:
    """Return the gradient as a table, with zeros in all other rows; the table may be read by another variable."""
    return scatter_add(gradient.values, gradient.rows, gradient.table if table is None else table)


def joined(gradients: Sequence[RowGradient]) -> RowGradient:
    """Return the sum of gradients of one table: their rows concatenated, int64[n], and the values T[n *d]."""
    flat = [_flat(gradient) for gradient in gradients]
    if len(flat) == 1:
        return flat[0]
    rows, values = (concat(parts, axis=0) for parts in ([each.rows for each in flat], [each.values for each in flat]))
    return RowGradient(flat[0].table, rows, values)


def _flat(gradient: RowGradient) -> RowGradient:
    rows, values, table = gradient.rows, gradient.values, gradient.table
    assert rows.shape is not None
    assert table.shape is not None
    if len(rows.shape) == 1:
        return gradient
    count = product(rows.shape)
    return RowGradient(table, reshape(rows, shape=Sizes((count,))), reshape(values, shape=Sizes((count, *table.shape[1:]))))

"""RowGradient: a sparse gradient of a table, with only the looked-up rows."""

from dataclasses import dataclass

from oarlock.ir.var import Var

__all__ = ["RowGradient"]


@dataclass(frozen=True)
class RowGradient:
    """The gradient of `table`, T[k *d]: `values` at the indexes `rows`, zero elsewhere.

    `rows` is int64[n] and `values` T[n *d]. The values of a repeated index are summed: `ol.op.coalesce(rows, values)` adds them up, and
    `ol.op.scatter_add(values, rows, table)` is the same gradient in dense form. While it is built inside a loop or branch, both may have
    any leading dimensions [*b] instead of [n].
    """

    table: Var
    rows: Var
    values: Var
    is_coalesced: bool = False
    """Whether the indexes in `rows` are unique."""

    def describe(self) -> str:
        """Describe its variables in one line."""
        return f'rows of the gradient of "{self.table.name}": {self.rows.describe()}, {self.values.describe()}'

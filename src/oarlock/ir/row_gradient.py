"""RowGradient: the gradient of a table of which rows were looked up, without the rows that were not."""

from dataclasses import dataclass

from oarlock.ir.var import Var

__all__ = ["RowGradient"]


@dataclass(frozen=True)
class RowGradient:
    """The gradient of `table`, T[k *d]: `values` for the numbered `rows`, zeros for all others.

    `rows` is int64[n] and `values` T[n *d]. A number that stands in `rows` several times stands for the sum of its values:
    `ol.op.coalesce(rows, values)` adds them up, and `ol.op.scatter_add(values, rows, table)` is the same gradient as a table. While it is
    built, in a loop or a branch, both may have any dimensions [*b] in place of [n].
    """

    table: Var
    rows: Var
    values: Var
    is_coalesced: bool = False
    """Whether no number stands in `rows` twice."""

    def describe(self) -> str:
        """The variables that it consists of, in one line."""
        return f'rows of the gradient of "{self.table.name}": {self.rows.describe()}, {self.values.describe()}'

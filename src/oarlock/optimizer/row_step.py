"""Updates of only those rows of a table that were looked up."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from oarlock.ir.dtype import DType
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.composed.row_gradients import as_table
from oarlock.op.indexing import gather
from oarlock.op.sparse_update import coalesce, put_rows
from oarlock.optimizer.step import Step

__all__ = ["Gradient", "Gradients", "RowStep", "as_tables", "coalesced"]

Gradient = Var | RowGradient
"""The gradient of a parameter, or of those of its rows that were looked up."""


Gradients = Sequence[tuple[Var, Gradient]]
"""Parameters, each with its gradient."""


def coalesced(gradient: RowGradient) -> RowGradient:
    """Return the gradient with duplicate rows summed."""
    if gradient.is_coalesced:
        return gradient
    distinct, sums = coalesce(gradient.rows, gradient.values)
    return RowGradient(gradient.table, distinct, sums, is_coalesced=True)


def as_tables(pairs: Gradients) -> list[tuple[Var, Var]]:
    """Return parameters with dense gradients."""
    return [(parameter, as_table(gradient) if isinstance(gradient, RowGradient) else gradient) for parameter, gradient in pairs]


@dataclass(frozen=True, kw_only=True)
class RowStep(Step):
    """A step on some rows of a table. State and commits are rows too; `put_back` writes them to the table."""

    table: Var
    rows: Var
    wholes: dict[Var, Var] = field(default_factory=dict)
    """The table and its states, by their rows."""

    @classmethod
    def of(cls, step: Step, gradient: RowGradient) -> "RowStep":
        """Return `step` on the rows of `gradient`, which is coalesced."""
        return cls(
            main=step.main,
            learning_rate=step.learning_rate,
            count=step.count,
            weight_decay=step.weight_decay,
            shared=step.shared,
            table=gradient.table,
            rows=gradient.rows,
        )

    def take(self, whole: Var) -> Var:
        """Return the rows of the table, or of a state of its shape."""
        taken = gather(whole, self.rows)
        self.wholes[taken] = whole
        return taken

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        whole = super().state(self.table, suffix, initial=initial, shape=shape, dtype=parameter.dtype if dtype is None else dtype)
        return self.take(whole) if shape is None else whole

    def put_back(self) -> dict[Var, Var]:
        """Return the value to commit for each variable: rows are written to their positions, others are unchanged."""
        following: dict[Var, Var] = {}
        for var, value in self.written.items():
            if var in self.wholes:
                following[self.wholes[var]] = put_rows(self.wholes[var], self.rows, value)
            else:
                following[var] = value  # a number shared by all parameters
        return following

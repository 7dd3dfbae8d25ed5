"""Updates of the rows of a table that were looked up: an optimizer is given these, and those of its state, as if there were no others."""

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
"""The gradient of a parameter, or of the rows of one that were looked up."""


Gradients = Sequence[tuple[Var, Gradient]]
"""Parameters, each with its gradient."""


def coalesced(gradient: RowGradient) -> RowGradient:
    """The same gradient, in which each row is numbered once."""
    if gradient.is_coalesced:
        return gradient
    distinct, sums = coalesce(gradient.rows, gradient.values)
    return RowGradient(gradient.table, distinct, sums, is_coalesced=True)


def as_tables(pairs: Gradients) -> list[tuple[Var, Var]]:
    """Parameters with their whole gradients."""
    return [(parameter, as_table(gradient) if isinstance(gradient, RowGradient) else gradient) for parameter, gradient in pairs]


@dataclass(frozen=True, kw_only=True)
class RowStep(Step):
    """A step on the rows of a table that are numbered. States are rows too, and so is what is committed, which is `put_back` at last."""

    table: Var
    rows: Var
    wholes: dict[Var, Var] = field(default_factory=dict)
    """The table and its states, by their rows."""

    @classmethod
    def of(cls, step: Step, gradient: RowGradient) -> "RowStep":
        """The step `step` on the rows of `gradient`, which is coalesced."""
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
        """The rows of the table, or of a state of its shape."""
        taken = gather(whole, self.rows)
        self.wholes[taken] = whole
        return taken

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        whole = super().state(self.table, suffix, initial=initial, shape=shape, dtype=parameter.dtype if dtype is None else dtype)
        return self.take(whole) if shape is None else whole

    def put_back(self) -> dict[Var, Var]:
        """Everything that is committed, with the value that it will hold: its rows put where they were taken, the others as they are."""
        following: dict[Var, Var] = {}
        for var, value in self.written.items():
            if var in self.wholes:
                following[self.wholes[var]] = put_rows(self.wholes[var], self.rows, value)
            else:
                following[var] = value  # a number that all parameters share
        return following

"""How the losses of examples become a cost: each for itself, their sum, or their mean."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.reduction import mean, reduce_sum
from oarlock.registry.creator import require_type
from oarlock.suggestions import did_you_mean

__all__ = ["reduced", "require_reduction", "writing_loss"]

_REDUCTIONS = {"none": lambda loss: loss, "sum": reduce_sum, "mean": mean}


def require_reduction(reduction: str, *others: str) -> str:
    """`reduction`, if there is one of that name. Raises ArgumentError."""
    known = (*_REDUCTIONS, *others)
    if reduction not in known:
        raise ArgumentError(
            f"no reduction is called {reduction!r:.60}",
            location=here(),
            contract=f"one of {', '.join(known)}",
            hint=did_you_mean(str(reduction), known),
        )
    return reduction


def writing_loss(name: str, x: Var, reduction: str, *others: str):
    """A `with` that takes back what it wrote where something fails. Raises ArgumentError for what is no reduction, or no variable."""
    require_reduction(reduction, *others)
    return undone_on_error(require_type(x, f"{name}: x").block.program)


def reduced(loss: Var, reduction: str) -> Var:
    """Losses as they are, their sum or their mean."""
    return _REDUCTIONS[reduction](loss)

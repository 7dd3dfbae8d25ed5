"""Reduction of losses to their sum or mean, and checks of their arguments."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here, warn_here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import may_be
from oarlock.ir.var import Var
from oarlock.op.manipulation import match_shape
from oarlock.op.reduction import mean, reduce_sum, same_shape
from oarlock.registry.creator import require_type
from oarlock.suggestions import did_you_mean

__all__ = ["reduced", "require_above", "require_one_shape", "require_reduction", "warn_of_broadcast", "writing_loss"]

_REDUCTIONS = {"none": lambda loss: loss, "sum": reduce_sum, "mean": mean}


def require_reduction(reduction: str, *others: str) -> str:
    """Return `reduction` if it is known. Raises ArgumentError."""
    known = (*_REDUCTIONS, *others)
    if reduction not in known:
        raise ArgumentError(
            f"no reduction is called {reduction!r:.60}",
            location=here(),
            contract=f"one of {', '.join(known)}",
            hint=did_you_mean(str(reduction), known),
        )
    return reduction


def require_above(what: str, value: object, least: float = 0.0, *, or_equal: bool = False) -> float:
    """Return `value` as a number above `least`, or equal to it if `or_equal`. Raises ArgumentError."""
    number = as_python(value)
    if not isinstance(number, int | float) or not (number > least or (or_equal and number == least)):
        raise ArgumentError(f"{what} must be {'at least' if or_equal else 'above'} {least:g}, not {value!r:.60}", location=here())
    return float(number)


def require_one_shape(what: str, x: Var, target: Var) -> Var:
    """Return ``target``, which must have the shape of ``x``: broadcasting would compare unrelated elements.

    Unknown sizes are compared when the program runs. Raises ShapeError if the shapes are known to differ.
    """
    if not isinstance(target, Var) or same_shape(x, target):
        return target
    if not _may_agree(x, target):
        raise ShapeError(
            f"{what}: the target is {target.type_text}, but x is {x.type_text}; their shapes must be equal",
            location=here(),
            given=[x.describe(), target.describe()],
            hint="use ol.op.unsqueeze(x, 1) to add an axis, or ol.op.squeeze(x, axis=1) to remove it" if x.ndim != target.ndim else None,
        )
    return match_shape(target, x)


def warn_of_broadcast(what: str, x: object, y: object) -> None:
    """Warn if compared variables have different shapes, such as [n, 1] and [n], which compare each element with all others."""
    if isinstance(x, Var) and isinstance(y, Var) and x.ndim and y.ndim and _differ(x, y):
        warn_here(f'{what}: "{x.name}" is {x.type_text} and "{y.name}" {y.type_text}, so that they are broadcast')


def _may_agree(x: Var, y: Var) -> bool:
    """Return whether the shapes of two variables may be equal in some run."""
    if x.shape is None or y.shape is None:
        return True
    return len(x.shape) == len(y.shape) and all(map(may_be, x.shape, y.shape))


def _differ(x: Var, y: Var) -> bool:
    """Return whether the shapes of two variables are known to differ."""
    if x.shape is None or y.shape is None:
        return False
    known = [(one, other) for one, other in zip(x.shape, y.shape, strict=False) if isinstance(one, int) and isinstance(other, int)]
    return len(x.shape) != len(y.shape) or any(one != other for one, other in known)


def writing_loss(name: str, x: Var, reduction: str, *others: str):
    """Return a context that removes appended ops on an error. Raises ArgumentError for an unknown reduction, or if
    ``x`` is not a variable.
    """
    require_reduction(reduction, *others)
    return undone_on_error(require_type(x, f"{name}: x").block.program)


def reduced(loss: Var, reduction: str) -> Var:
    """Return the losses themselves, their sum or their mean."""
    return _REDUCTIONS[reduction](loss)

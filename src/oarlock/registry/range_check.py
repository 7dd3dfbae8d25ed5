"""Checks of numeric and string arguments, with errors at the user's line."""

import math

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python

__all__ = ["require_choice", "require_count", "require_number"]


def require_number(
    what: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Return `value` as a finite float within the bounds. Raises ArgumentError, which lists the bounds."""
    number = as_python(value)
    number = number if isinstance(number, int | float) and not isinstance(number, bool) else math.nan
    is_within = (
        -math.inf < number < math.inf
        and (least is None or number >= least)
        and (above is None or number > above)
        and (below is None or number < below)
        and (most is None or number <= most)
    )
    if not is_within:
        bounds = ((">=", least), (">", above), ("<", below), ("<=", most))
        wanted = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        raise ArgumentError(f"{what} must be a finite number{' ' if wanted else ''}{wanted}, not {value!r:.60}", location=here())
    return float(number)


def require_count(what: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an integer from `least` to `most`, or to the int64 maximum. Raises ArgumentError."""
    number = as_python(value)
    above = most is not None and isinstance(number, int) and number > most
    if not isinstance(number, int) or isinstance(number, bool) or above or not least <= number < 2**63:
        raise ArgumentError(
            f"{what} must be an integer {f'from {least} to {most}' if above else f'>= {least}'}, not {value!r:.60}", location=here()
        )
    return number


def require_choice(what: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`. Raises ArgumentError."""
    if not isinstance(value, str) or value not in choices:
        wanted = " or ".join([", ".join(map(repr, choices[:-1])), repr(choices[-1])] if len(choices) > 1 else map(repr, choices))
        raise ArgumentError(f"{what} must be {wanted}, not {value!r:.60}", location=here())
    return value

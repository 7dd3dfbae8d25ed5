"""A program that fails, made smaller for as long as it fails in the same check."""

import time
from collections.abc import Iterator

from generated.checking import DisagreementError, check
from generated.making import Case, from_choices
from oarlock.errors import OarlockError

__all__ = ["failure_of", "shrink"]


def failure_of(case: Case, *, passes: bool = False, pairs: bool = False, others: int | None = None) -> Exception | None:
    """The error that checking a case raises: a DisagreementError, or an error that the framework ought not to raise."""
    try:
        check(case, passes=passes, pairs=pairs, others=others)
    except Exception as error:
        return error
    return None


def _kind(error: Exception) -> str:
    """The failure that a smaller program must have too: the check; of an error, its beginning."""
    if isinstance(error, DisagreementError):
        return error.check
    text = error.message if isinstance(error, OarlockError) else str(error)
    return f"{type(error).__name__} {text[:20]}"


def shrink(
    case: Case, *, seconds: float = 60.0, passes: bool = False, pairs: bool = False, others: int | None = None
) -> tuple[Case, Exception]:
    """The smallest failing case that is found in the time, and its failure. Choices are left out, made zero, or made smaller.

    `passes`, `pairs` and `others` are tried as they were when it failed.
    """
    error = failure_of(case, passes=passes, pairs=pairs, others=others)
    assert error is not None
    kind, until = _kind(error), time.monotonic() + seconds
    best, smaller = case, True
    while smaller and time.monotonic() < until:
        smaller = False
        for choices in _simpler(best):
            if time.monotonic() > until:
                break
            try:
                tried = from_choices(choices)
            except Exception:  # what fails to be made fails in another way
                continue
            if _size(tried) < _size(best):
                found = failure_of(tried, passes=passes, pairs=pairs, others=others)
                if found is not None and _kind(found) == kind:
                    best, error, smaller = tried, found, True
                    break
    return best, error


def _size(case: Case) -> tuple[int, int, int, list[int]]:
    ops = sum(len(block.ops) for block in case.program.blocks)
    return ops + len(case.arrays) + len(case.targets), sum(array.size for array in case.arrays.values()), len(case.choices), case.choices


def _simpler(case: Case) -> Iterator[list[int]]:
    """Lists of choices that are shorter or smaller, the largest steps first."""
    made = case.choices
    length = len(made)
    width = length // 2
    while width:
        for start in range(0, length, width):
            yield made[:start] + made[start + width :]
            yield made[:start] + [0] * len(made[start : start + width]) + made[start + width :]
        width //= 2
    for number, value in enumerate(made):
        for lower in {0, value // 2, value - 1} - {value, -1}:
            yield [*made[:number], lower, *made[number + 1 :]]

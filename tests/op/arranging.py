"""Operators at their cases and at the edges, in memory of every arrangement; and whether two results are the same."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import pytest
import torch
from op.arguments import DERIVED, DTYPES, FORWARD, Arguments, cases_of, derive, has_floats, root, root_arguments
from op.edges import edges_of, strided, transposed
from tolerances import BY_PLACE

from oarlock.registry import Case, GradCheck, Operator

Make = Callable[[], Arguments]
OPERATORS = [*FORWARD, *DERIVED]
ARRANGEMENTS = [torch.clone, strided, transposed]


def at_every_use(operators: Sequence[Operator]) -> Callable[[Callable[[Operator, Make], None]], object]:
    """Make a test of an operator, and of a function that makes arguments of it, one test for each of these operators, at all its uses.

    Where it fails, the error says at which. Thousands of tests of their own would take longer to be collected than to be run.
    """

    def decorate(test: Callable[[Operator, Make], None]) -> object:
        def at_its_uses(operator: Operator) -> None:
            for name, make in uses_of(operator):
                try:
                    test(operator, make)
                except Exception as error:
                    error.add_note(f"at {name}")
                    raise

        at_its_uses.__name__, at_its_uses.__doc__, at_its_uses.__module__ = test.__name__, test.__doc__, test.__module__
        return pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in operators])(at_its_uses)

    return decorate


@cache
def uses_of(operator: Operator) -> list[tuple[str, Make]]:
    """At its cases and at the edges, in each dtype: a name, and a function that makes arguments of the operator."""
    found: list[tuple[str, Make]] = []
    for dtype in DTYPES:
        cases = [
            (f"{name}-{DTYPES[dtype]}", case)
            for name, case in cases_of(operator, Case, GradCheck)
            if isinstance(case, GradCheck) or has_floats(root(operator), case) or dtype is torch.float64
        ]
        found += [(name, partial(_at_case, operator, case, dtype)) for name, case in cases]
        found += [(name, partial(_at_edge, operator, edge)) for name, edge in edges_of(operator, cases, dtype)]
    return found


def _at_case(operator: Operator, case: Case | GradCheck, dtype: torch.dtype) -> Arguments:
    return derive(operator, root_arguments(root(operator), case, dtype))


def _at_edge(operator: Operator, edge: Callable[[], Arguments]) -> Arguments:
    return derive(operator, edge())


def arranged(arguments: Arguments, arrange: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """The same arguments, each in memory of its own."""
    return arguments.replaced(lambda _, tensor: arrange(tensor))


def same_bits(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors hold the same: NaN where NaN is, and the same sign of 0."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if not actual.is_floating_point():
        return torch.equal(actual, expected)
    return torch.equal(actual.signbit(), expected.signbit()) and torch.equal(actual.nan_to_num(nan=77.0), expected.nan_to_num(nan=77.0))


def same_up_to_place(operator: Operator, actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors hold what one kernel and a form of it may give: the same bits, or where that rounds by place nearly the same."""
    if operator.sensitive_to != "place" or not expected.is_floating_point():
        return same_bits(actual, expected)
    relative, absolute = BY_PLACE[expected.dtype]
    return actual.dtype == expected.dtype and torch.allclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)


def column_slice(like: torch.Tensor) -> torch.Tensor:
    """A tensor like `like` that is a slice of columns of a larger one: of its last axis, where it has one."""
    if not like.ndim:
        return torch.full((3,), 77, dtype=like.dtype)[1]
    wide = torch.full((*like.shape[:-1], like.shape[-1] + 5), 77, dtype=like.dtype)
    return wide[..., 2 : like.shape[-1] + 2]

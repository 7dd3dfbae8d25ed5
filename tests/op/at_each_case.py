"""One test for each operator, that is run at each of its cases: a runner spends more on a test than most operators on a case."""

from collections.abc import Callable, Iterable

import pytest

from oarlock.registry import Operator

Use = tuple[Operator, str, *tuple[object, ...]]
"""An operator, the name of one of its cases, and the other arguments of a test."""


def at_each_case(uses: Iterable[Use]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with the operator and the other arguments of each use.

    All cases of an operator are tried; what fails says at which. A case may be skipped; an operator is skipped where each case was. The
    test asks for no fixtures.
    """
    by_operator: dict[str, list[Use]] = {}
    for use in uses:
        by_operator.setdefault(use[0].type, []).append(use)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("uses", [pytest.param(uses, id=name) for name, uses in by_operator.items()])
        def run(uses: list[Use]) -> None:
            failures: list[BaseException] = []
            skipped: list[str] = []
            for operator, name, *arguments in uses:
                try:
                    test(operator, *arguments)
                except pytest.skip.Exception as skip:
                    skipped.append(f"{name}: {skip}")
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"at {name}")
                    failures.append(failure)
            if failures:
                raise failures[0] if len(failures) == 1 else BaseExceptionGroup(f"{len(failures)} cases of {len(uses)}", failures)
            if len(skipped) == len(uses):
                pytest.skip(skipped[0])

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        run.pytestmark = [*getattr(test, "pytestmark", []), *run.pytestmark]  # type: ignore[attr-defined]
        return run

    return decorate

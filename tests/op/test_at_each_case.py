"""A failure, or a skip, at one of many cases is told."""

import pytest
from op.arguments import FORWARD
from op.at_each_case import Use, at_each_case

OPERATOR = FORWARD[0]


def uses(*outcomes: str) -> list[Use]:
    return [(OPERATOR, f"case-{number}", outcome) for number, outcome in enumerate(outcomes)]


def outcome_of(given: list[Use]) -> None:
    called: list[str] = []

    @at_each_case(given)
    def test(operator, outcome):
        assert operator is OPERATOR
        called.append(outcome)
        if outcome == "skips":
            pytest.skip("it is not for this one")
        if outcome == "raises":
            with pytest.raises(ValueError, match="none"):
                pass
        assert outcome != "fails"

    try:
        test(given)
    finally:
        assert called == [outcome for _, _, outcome in given]


def test_a_test_is_run_for_each_operator_with_all_of_its_cases():
    other = FORWARD[1]
    given = [(OPERATOR, "first", 1), (other, "second", 2), (OPERATOR, "third", 3)]

    @pytest.mark.filterwarnings("error")
    @at_each_case(given)
    @pytest.mark.slow
    def test(operator, number): ...

    marks = {mark.name: mark for mark in test.pytestmark}  # type: ignore[attr-defined]
    assert set(marks) == {"filterwarnings", "slow", "parametrize"}
    name, params = marks["parametrize"].args
    assert name == "uses"
    assert {param.id: param.values for param in params} == {OPERATOR.type: ([given[0], given[2]],), other.type: ([given[1]],)}


def test_one_failure_is_raised_itself():
    with pytest.raises(AssertionError) as failure:
        outcome_of(uses("passes", "fails", "skips"))
    assert failure.value.__notes__ == ["at case-1"]


def test_several_failures_are_raised_together():
    with pytest.raises(BaseExceptionGroup, match="2 cases of 3") as failures:
        outcome_of(uses("raises", "passes", "fails"))
    assert [each.__notes__ for each in failures.value.exceptions] == [["at case-0"], ["at case-2"]]


def test_an_operator_is_skipped_where_each_case_is():
    with pytest.raises(pytest.skip.Exception, match="case-0: it is not for this one"):
        outcome_of(uses("skips", "skips"))
    outcome_of(uses("skips", "passes"))

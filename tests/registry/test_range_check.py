"""Numbers in the range that an argument is for."""

import pytest

import oarlock as ol
from oarlock.registry.range_check import require_count


@pytest.mark.parametrize("value", [1, 1024])
def test_a_count_in_its_range_is_itself(value):
    assert require_count("batch_size", value, most=1024) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "batch_size must be an integer >= 1, not 0"),
        (True, "batch_size must be an integer >= 1, not True"),
        (2.0, "batch_size must be an integer >= 1, not 2.0"),
        ("8", "batch_size must be an integer >= 1, not '8'"),
        (1025, "batch_size must be an integer from 1 to 1024, not 1025"),
    ],
)
def test_what_is_no_count_is_named_with_the_range_and_the_users_line(value, said):
    with pytest.raises(ol.ArgumentError) as refused:
        require_count("batch_size", value, most=1024)
    assert refused.value.message == said
    assert "test_range_check.py:" in str(refused.value.location)


def test_what_an_int64_does_not_hold_is_no_count():
    assert require_count("steps", 2**63 - 1) == 2**63 - 1
    with pytest.raises(ol.ArgumentError, match="steps must be an integer >= 1, not 9223372036854775808"):
        require_count("steps", 2**63)

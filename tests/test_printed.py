"""Differences between two printed texts that are settled, and others that are not."""

import pytest
from printed import settle


@pytest.mark.parametrize("text", ["-7.42164 to 0.93881, 87 -inf of 160", "1.5e-06", "a 2.9", "step 10"])
def test_text_that_is_the_same_stays(text):
    assert settle(text, text) == text


def test_one_more_in_the_last_digit_is_settled():
    assert settle("y -7.42164 to 0.93881, 87", "y -7.42165 to 0.93880, 87") == "y -7.42165 to 0.93880, 87"
    assert settle("1.5e-06", "1.6e-06") == "1.6e-06"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("-7.42164", "-7.42166"), ("7.5", "-7.5"), ("87 of 160", "88 of 160"), ("1.5e-06", "1.5e-05"), ("x 1.5", "y 1.5"), ("1.5", "1.5 2.5")],
)
def test_whatever_else_differs_still_does(printed, expected):
    assert settle(printed, expected) != expected

"""Printed text as another processor prints it: the last digit of a number may differ, all else is the same to the character."""

import re

_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def settle(printed: str, expected: str) -> str:
    """`printed`, with each decimal number that is at most one of its last digit from that of `expected` written as it stands there."""
    given = iter(_NUMBER.findall(expected))

    def settled(match: re.Match[str]) -> str:
        wanted = next(given, match[0])
        return wanted if abs(float(match[0]) - float(wanted)) <= 1.001 * _last_digit(wanted) else match[0]

    return _NUMBER.sub(settled, printed)


def _last_digit(number: str) -> float:
    """The worth of one more in the last digit: 0.01 for 2.15, 1e-7 for 1.5e-6."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))

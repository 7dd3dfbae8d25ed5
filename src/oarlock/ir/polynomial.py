"""Polynomials of names: the arithmetic of sizes, their canonical spelling and its grammar.

A polynomial maps each monomial, a sorted tuple of factors, to a coefficient; the empty monomial is the constant. A factor is a name, a
floor division such as `(h-3)//2`, or a minimum such as `min(t,512)`.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from oarlock.errors import ShapeError

__all__ = [
    "MAX_TERMS",
    "TOKEN",
    "Polynomial",
    "divided",
    "find_division",
    "find_least",
    "least",
    "nonzero",
    "parse",
    "plus",
    "spell",
    "split_at_commas",
    "times",
]

Polynomial = dict[tuple[str, ...], int]

TOKEN = re.compile(r"min\(|\d+|[A-Za-z_][A-Za-z0-9_.@]*|//|[-+*(),]")
_MAX_LENGTH = 256
MAX_TERMS = _MAX_LENGTH // 2  # also of intermediate results
_MOST_CHOICES = 8  # of a minimum, which are compared in pairs
_MOST_BOUNDS = 24  # tried when proving that a polynomial is non-negative


def plus(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the sum."""
    total = dict(left)
    for factors, coefficient in right.items():
        total[factors] = total.get(factors, 0) + coefficient
    return total


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product. Raises ShapeError if it has too many terms."""
    total: Polynomial = {}
    for a, p in left.items():
        for b, q in right.items():
            factors = tuple(sorted(a + b))
            total[factors] = total.get(factors, 0) + p * q
        if len(total) > MAX_TERMS:
            raise ShapeError(f"a symbol may have at most {MAX_TERMS} terms")
    return total


def divided(polynomial: Polynomial, divisor: int) -> Polynomial:
    """Return the floor division; a single factor unless every coefficient is divisible."""
    terms = nonzero(polynomial)
    if not any(terms) or all(coefficient % divisor == 0 for coefficient in terms.values()):
        return {factors: coefficient // divisor for factors, coefficient in terms.items()}
    return {(f"({spell(terms)})//{divisor}",): 1}


def spell(polynomial: Polynomial) -> int | str:
    """Return the canonical spelling. Raises ShapeError if it is too long."""
    terms = nonzero(polynomial)
    if not terms:
        return 0
    if list(terms) == [()]:
        return terms[()]
    text = ""
    for factors in sorted(terms, key=_term_order):
        coefficient = terms[factors]
        sign = "-" if coefficient < 0 else "+" if text else ""
        number = [str(abs(coefficient))] if abs(coefficient) != 1 or not factors else []
        text += sign + "*".join([*number, *factors])
    return _require_short(text)


def _term_order(factors: tuple[str, ...]) -> tuple[bool, bool, tuple[str, ...]]:
    """Sort names first, minimums next, the constant last."""
    return not factors, any(factor.startswith("min(") for factor in factors), factors


def _require_short(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        raise ShapeError(f"a symbol may have at most {_MAX_LENGTH} characters")
    return text


def parse(size: int | str) -> Polynomial:
    """Parse a size. Raises ShapeError for invalid or overlong text."""
    if isinstance(size, int):
        return {(): size}
    tokens = TOKEN.findall(_require_short(size))
    if "".join(tokens) != size or not tokens:
        raise ShapeError(f"{size!r} is not a size")
    polynomial, end = _parse_sum(tokens, 0, depth=0)
    if end != len(tokens):
        raise ShapeError(f"{size!r} is not a size")
    return polynomial


def _parse_sum(tokens: list[str], at: int, depth: int) -> tuple[Polynomial, int]:
    total: Polynomial = {}
    sign = 1
    if at < len(tokens) and tokens[at] == "-":
        sign, at = -1, at + 1
    while True:
        product: Polynomial = {(): sign}
        while True:
            factor, at = _parse_factor(tokens, at, depth)
            product = times(product, factor)
            if at >= len(tokens) or tokens[at] != "*":
                break
            at += 1
        total = plus(total, product)
        if at >= len(tokens) or tokens[at] not in "+-":
            return total, at
        sign, at = (1 if tokens[at] == "+" else -1), at + 1


def _parse_factor(tokens: list[str], at: int, depth: int) -> tuple[Polynomial, int]:
    if at >= len(tokens) or depth > 16:
        raise ShapeError("not a size")
    first = tokens[at]
    if first.isdigit():
        return {(): int(first)}, at + 1
    if first == "(":
        inner, at = _parse_sum(tokens, at + 1, depth + 1)
        if tokens[at : at + 2] != [")", "//"] or not tokens[at + 2 : at + 3] or not tokens[at + 2].isdigit():
            raise ShapeError("not a size")
        divisor = int(tokens[at + 2])
        if divisor < 2:
            raise ShapeError("not a size")
        return divided(inner, divisor), at + 3
    if first == "min(":
        return _parse_choices(tokens, at + 1, depth)
    if first in "+-*)," or first == "//":
        raise ShapeError("not a size")
    return {(first,): 1}, at + 1


def _parse_choices(tokens: list[str], at: int, depth: int) -> tuple[Polynomial, int]:
    choices: list[Polynomial] = []
    end = ","
    while end == ",":
        choice, at = _parse_sum(tokens, at, depth + 1)
        choices.append(choice)
        end, at = "".join(tokens[at : at + 1]), at + 1
    if end != ")" or not 2 <= len(choices) <= _MOST_CHOICES:
        raise ShapeError("not a size")
    return least(choices), at


def nonzero(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial without zero coefficients."""
    return {factors: coefficient for factors, coefficient in polynomial.items() if coefficient}


def split_at_commas(text: str) -> list[str]:
    """Split a text at its commas outside parentheses."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


@lru_cache(maxsize=4096)
def find_division(factor: str) -> tuple[str, int] | None:
    """Return the dividend and divisor of a floor division; None for other factors."""
    if not factor.startswith("("):
        return None
    inner, divisor = factor[1:].rsplit(")//", 1)
    return inner, int(divisor)


@lru_cache(maxsize=4096)
def find_least(factor: str) -> tuple[int | str, ...] | None:
    """Return the choices of a minimum; None for other factors."""
    if not factor.startswith("min("):
        return None
    texts = split_at_commas(factor[len("min(") : -1])
    return tuple(int(text) if text.isdigit() else text for text in texts)


def least(choices: Sequence[Polynomial]) -> Polynomial:
    """Return the minimum of some polynomials, simplified as far as can be proved. Names are integers >= 0.

    The common part is moved in front of the minimum, and a choice that is provably not smaller than another one is dropped.
    """
    common: Polynomial = {}
    factor = 1
    while True:
        shared = _shared(choices)
        common = plus(common, {factors: coefficient * factor for factors, coefficient in shared.items()})
        choices = [nonzero(plus(choice, times({(): -1}, shared))) for choice in choices]
        divisor = gcd(*(coefficient for choice in choices for coefficient in choice.values())) or 1
        factor *= divisor
        choices = [{factors: coefficient // divisor for factors, coefficient in choice.items()} for choice in choices]
        choices = _without_larger(sorted(choices, key=_order))
        if len(choices) == 1:
            return nonzero(plus(common, times({(): factor}, choices[0])))
        spread = next(filter(None, (_spread(choice, len(choices)) for choice in choices)), None)
        if spread is None:
            text = f"min({','.join(str(spell(choice)) for choice in choices)})"
            return nonzero(plus(common, {(_require_short(text),): factor}))
        choices = [other for choice in choices for other in (spread[1] if choice is spread[0] else [choice])]


def _shared(choices: Sequence[Polynomial]) -> Polynomial:
    """Return the common part of all choices: the smallest coefficient of each monomial."""
    monomials = {factors for choice in choices for factors in choice}
    return nonzero({factors: min(choice.get(factors, 0) for choice in choices) for factors in monomials})


def _order(choice: Polynomial) -> tuple[bool, str]:
    return not any(choice), str(spell(choice))


def _without_larger(choices: list[Polynomial]) -> list[Polynomial]:
    """Drop choices that are provably not smaller than another one."""
    left = list(choices)
    for choice in choices:
        others = [other for other in left if other is not choice]
        if any(_is_at_least_0(nonzero(plus(choice, times({(): -1}, other)))) for other in others):
            left = others
    return left


def _spread(choice: Polynomial, count: int) -> tuple[Polynomial, list[Polynomial]] | None:
    """If a term of `choice` is a minimum, return the choice and the choices it expands to; None if there is none, or too many."""
    for factors in sorted(choice):
        inner = find_least(factors[0]) if len(factors) == 1 else None
        if inner is not None and count + len(inner) - 1 <= _MOST_CHOICES:
            rest, factor = {other: choice[other] for other in choice if other != factors}, {(): choice[factors]}
            return choice, [nonzero(plus(rest, times(factor, parse(item)))) for item in inner]
    return None


def _is_at_least_0(polynomial: Polynomial) -> bool:
    """Return whether a polynomial is provably non-negative."""
    return _has_bound(polynomial, [_MOST_BOUNDS])


def _has_bound(polynomial: Polynomial, left: list[int]) -> bool:
    """Return whether a polynomial is provably non-negative, by its terms or by bounding a factor. `left` is the remaining number of
    attempts.
    """
    unsure = [factors for factors in sorted(polynomial) if polynomial[factors] < 0 or not all(map(_is_factor_at_least_0, factors))]
    if not unsure:
        return True
    for factors in sorted(polynomial):
        coefficient = polynomial[factors]
        rest = {other: polynomial[other] for other in polynomial if other != factors}
        for at, factor in enumerate(factors):
            beside = factors[:at] + factors[at + 1 :]
            if not all(map(_is_factor_at_least_0, beside)):
                continue
            bounds, each = _bounds(factor, coefficient)
            found = []
            for bound, times_rest in bounds:
                left[0] -= 1
                if left[0] < 0:
                    return False
                whole = plus(times({(): times_rest}, rest), times({beside: coefficient}, bound))
                whole = plus(whole, {(): times_rest - 1})  # for integers, > -1 means >= 0
                found.append(_has_bound(nonzero(whole), left))
                if found[-1] is not each:
                    break
            if found and found[-1]:
                return True
    return False


def _bounds(factor: str, coefficient: int) -> tuple[list[tuple[Polynomial, int]], bool]:
    """Return bounds of a factor, each with a multiplier for the other terms, and whether all are needed (else one suffices)."""
    inner, division = find_least(factor), find_division(factor)
    if inner is not None:
        return [(parse(item), 1) for item in inner], coefficient > 0
    if division is not None:
        dividend, divisor = division
        rounded = 0 if coefficient < 0 else divisor - 1
        return [(plus(parse(dividend), {(): -rounded}), divisor)], True
    return [], True


@lru_cache(maxsize=4096)
def _is_factor_at_least_0(factor: str) -> bool:
    """Return whether a factor is provably non-negative, as every name is."""
    division = find_division(factor)
    return all(map(_is_at_least_0, map(parse, find_least(factor) or (() if division is None else division[:1]))))

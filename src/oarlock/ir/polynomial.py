"""Polynomials of names: what sizes are computed with, their one canonical spelling, and its grammar.

A polynomial maps each monomial, its factors sorted, to a coefficient; the empty monomial is the constant. A factor is a name, a floor
division such as `(h-3)//2`, or the least of some sizes, such as `min(t,512)`.
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
MAX_TERMS = _MAX_LENGTH // 2  # of a polynomial on the way to one that may be spelled
_MOST_CHOICES = 8  # of the least of several sizes, which are compared in pairs
_MOST_BOUNDS = 24  # that are tried to show that a polynomial is at least 0


def plus(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the sum."""
    total = dict(left)
    for factors, coefficient in right.items():
        total[factors] = total.get(factors, 0) + coefficient
    return total


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product. Raises ShapeError for one of too many terms."""
    total: Polynomial = {}
    for a, p in left.items():
        for b, q in right.items():
            factors = tuple(sorted(a + b))
            total[factors] = total.get(factors, 0) + p * q
        if len(total) > MAX_TERMS:
            raise ShapeError(f"a symbol may have {MAX_TERMS} terms")
    return total


def divided(polynomial: Polynomial, divisor: int) -> Polynomial:
    """Return the floor division, a factor of its own unless every coefficient divides."""
    terms = nonzero(polynomial)
    if not any(terms) or all(coefficient % divisor == 0 for coefficient in terms.values()):
        return {factors: coefficient // divisor for factors, coefficient in terms.items()}
    return {(f"({spell(terms)})//{divisor}",): 1}


def spell(polynomial: Polynomial) -> int | str:
    """Return the one spelling. Raises ShapeError for one that is too long."""
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
    """Names first, then the least of some sizes, and the number last."""
    return not factors, any(factor.startswith("min(") for factor in factors), factors


def _require_short(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        raise ShapeError(f"a symbol may have {_MAX_LENGTH} characters")
    return text


def parse(size: int | str) -> Polynomial:
    """Read a size. Raises ShapeError for a text that is not one, or is too long."""
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
    """The polynomial without the monomials whose coefficient is 0."""
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
    """The dividend and the divisor of a factor that is a floor division; None for another."""
    if not factor.startswith("("):
        return None
    inner, divisor = factor[1:].rsplit(")//", 1)
    return inner, int(divisor)


@lru_cache(maxsize=4096)
def find_least(factor: str) -> tuple[int | str, ...] | None:
    """The sizes of which a factor is the least; None for a factor of another kind."""
    if not factor.startswith("min("):
        return None
    texts = split_at_commas(factor[len("min(") : -1])
    return tuple(int(text) if text.isdigit() else text for text in texts)


def least(choices: Sequence[Polynomial]) -> Polynomial:
    """The least of some polynomials, as far as names show which that is: names stand for numbers from 0 on.

    What all choices have in common stands in front, and a choice that is shown to be at least another one is left out.
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
    """The part that all choices have in common: of each monomial, the smallest coefficient."""
    monomials = {factors for choice in choices for factors in choice}
    return nonzero({factors: min(choice.get(factors, 0) for choice in choices) for factors in monomials})


def _order(choice: Polynomial) -> tuple[bool, str]:
    return not any(choice), str(spell(choice))


def _without_larger(choices: list[Polynomial]) -> list[Polynomial]:
    """The choices without those that are shown to be at least another one."""
    left = list(choices)
    for choice in choices:
        others = [other for other in left if other is not choice]
        if any(_is_at_least_0(nonzero(plus(choice, times({(): -1}, other)))) for other in others):
            left = others
    return left


def _spread(choice: Polynomial, count: int) -> tuple[Polynomial, list[Polynomial]] | None:
    """A choice with a least of others as one of its terms, and the choices that it stands for; None where there is none, or too many."""
    for factors in sorted(choice):
        inner = find_least(factors[0]) if len(factors) == 1 else None
        if inner is not None and count + len(inner) - 1 <= _MOST_CHOICES:
            rest, factor = {other: choice[other] for other in choice if other != factors}, {(): choice[factors]}
            return choice, [nonzero(plus(rest, times(factor, parse(item)))) for item in inner]
    return None


def _is_at_least_0(polynomial: Polynomial) -> bool:
    """Whether a polynomial is shown to be at least 0 wherever its names are."""
    return _has_bound(polynomial, [_MOST_BOUNDS])


def _has_bound(polynomial: Polynomial, left: list[int]) -> bool:
    """Whether each term is at least 0, or else bounds in the place of a factor show that their sum is. `left` is how many may be tried."""
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
                whole = plus(whole, {(): times_rest - 1})  # of whole numbers: more than -1 is at least 0
                found.append(_has_bound(nonzero(whole), left))
                if found[-1] is not each:
                    break
            if found and found[-1]:
                return True
    return False


def _bounds(factor: str, coefficient: int) -> tuple[list[tuple[Polynomial, int]], bool]:
    """Polynomials that bound a factor, each with a multiplier for the other terms, and whether all of them are needed or one suffices."""
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
    """Whether a factor is shown to be at least 0: a name is."""
    division = find_division(factor)
    return all(map(_is_at_least_0, map(parse, find_least(factor) or (() if division is None else division[:1]))))

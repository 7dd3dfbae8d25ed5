"""Sizes: a number, or a symbol that has one value per run.

A symbol is a name (`n`) or a polynomial of names in one canonical spelling (`2*n+1`), so that two
sizes computed in different ways are the same size exactly when their spellings are equal. What
arithmetic cannot express as a polynomial, a floor division, becomes a name of its own: `(h-3)//2`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce

from oarlock.errors import ShapeError

__all__ = [
    "Shape",
    "Size",
    "add",
    "can_be_equal",
    "divide",
    "evaluate",
    "floor_divide",
    "format_shape",
    "is_same",
    "is_symbol",
    "linear",
    "multiply",
    "names_in",
    "product",
    "rename",
    "solve",
    "sum_of",
    "terms",
    "told",
    "whole",
]

Size = int | str
Shape = tuple[Size, ...]

# A polynomial: monomial (its factors, sorted) -> coefficient. The empty monomial is the constant.
_Polynomial = dict[tuple[str, ...], int]

_TOKEN = re.compile(r"\d+|[A-Za-z_][A-Za-z0-9_.@]*|//|[-+*()]")
_MAX_LENGTH = 256
_MAX_TERMS = _MAX_LENGTH // 2  # of a polynomial on the way to one that may be spelled
_remember = lru_cache(maxsize=8192, typed=True)  # programs hold the same few symbols again and again


@_remember
def add(left: Size, right: Size) -> Size:
    """`left + right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return _spell(_plus(_parse(left), _parse(right)))


def sum_of(sizes: Iterable[Size]) -> Size:
    """The sum of any number of sizes; equal ones are counted, not added one by one."""
    counts = Counter(sizes)
    total: Size = sum(size * count for size, count in counts.items() if isinstance(size, int))
    for size, count in counts.items():
        total = total if isinstance(size, int) else add(total, multiply(size, count))
    return total


@_remember
def multiply(left: Size, right: Size) -> Size:
    """`left * right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return _spell(_times(_parse(left), _parse(right)))


def product(shape: Iterable[Size]) -> Size:
    """How many elements there are in a shape."""
    total: Size = 1
    return reduce(multiply, shape, total)


@_remember
def floor_divide(left: Size, right: int) -> Size:
    """`left // right`, exact where every coefficient divides."""
    if isinstance(left, int):
        return left // right
    return _spell(_divided(_parse(left), right))


def divide(left: Size, right: Size) -> Size | None:
    """The size that is `left` when it is multiplied by `right`; None where there is none, or `right` is 0."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right if right and left % right == 0 else None
    rest, divisor = _nonzero(_parse(left)), _nonzero(_parse(right))
    quotient: _Polynomial = {}
    while rest and divisor:
        first, last = max(rest, key=_rank), max(divisor, key=_rank)
        factors = Counter(first)
        factors.subtract(last)
        if rest[first] % divisor[last] or any(count < 0 for count in factors.values()):
            return None
        term = {tuple(sorted(factors.elements())): rest[first] // divisor[last]}
        quotient |= term
        rest = _nonzero(_plus(rest, _times({(): -1}, _times(term, divisor))))
    return _spell(quotient) if divisor else None


def _nonzero(polynomial: _Polynomial) -> _Polynomial:
    return {factors: coefficient for factors, coefficient in polynomial.items() if coefficient}


def _rank(factors: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """An order of monomials that products keep: by degree, and then by the sorted factors."""
    return len(factors), factors


@_remember
def whole(size: Size) -> Size:
    """The same size with whole multiples taken out of its divisions, `(n-2)//2+1` as `(n)//2`: one spelling of more that are equal."""
    return size if isinstance(size, int) or "//" not in size else _spell(_whole(_parse(size)))


def is_same(left: Size, right: Size) -> bool:
    """Whether two sizes are one number whatever the symbols are, as far as `whole` shows it."""
    return left == right or whole(left) == whole(right)


def can_be_equal(left: Size, right: Size) -> bool:
    """Return whether two sizes are equal for some values of their names, which are whole numbers from 0.

    False is certain: `n+1` and `n`, `2*n` and 3, `n+5` and 3. Where it is not certain, True, as for a size that begins with "?".
    """
    if any(isinstance(size, str) and size.startswith("?") for size in (left, right)):
        return True
    difference = _nonzero(_plus(_parse(left), _times({(): -1}, _parse(right))))
    rest = difference.pop((), 0)
    if not rest:
        return True
    if any(factor.startswith("(") for factors in difference for factor in factors):
        return bool(difference)  # a division may be negative
    if all(coefficient * rest > 0 for coefficient in difference.values()):
        return False
    return rest % math.gcd(*difference.values()) == 0


def _whole(polynomial: _Polynomial) -> _Polynomial:
    """The same polynomial; in divisions, every coefficient is less than the divisor, and none divides another division alone."""
    total: _Polynomial = {}
    for factors, coefficient in polynomial.items():
        product: _Polynomial = {(): coefficient}
        for factor in factors:
            product = _times(product, _whole_quotient(*_division(factor)) if factor.startswith("(") else {(factor,): 1})
        total = _plus(total, product)
    return _nonzero(total)


def _division(factor: str) -> tuple[_Polynomial, int]:
    dividend, _, divisor = factor.rpartition("//")
    return _whole(_parse(dividend[1:-1])), int(divisor)


def _whole_quotient(dividend: _Polynomial, divisor: int) -> _Polynomial:
    quotient = {factors: coefficient // divisor for factors, coefficient in dividend.items()}
    rest = _nonzero({factors: coefficient % divisor for factors, coefficient in dividend.items()})
    inner = [factors for factors in rest if factors]
    if not inner:
        return quotient
    if len(inner) == 1 and rest[inner[0]] == 1 and len(inner[0]) == 1 and inner[0][0].startswith("("):
        further, by = _division(inner[0][0])  # (x // a + k) // b is (x + k * a) // (a * b)
        return _plus(quotient, _whole_quotient(_plus(further, {(): rest.get((), 0) * by}), by * divisor))
    return _plus(quotient, {(f"({_spell(rest)})//{divisor}",): 1})


def evaluate(size: Size, values: Mapping[str, int]) -> int | None:
    """The number that `size` is when each name has its value; None where a name has none."""
    if isinstance(size, int):
        return size
    if size in values:
        return values[size]
    total = 0
    for factors, coefficient in _parse(size).items():
        product = coefficient
        for factor in factors:
            value = values.get(factor)
            if value is None:
                value = _evaluate_division(factor, values)
            if value is None:
                return None
            product *= value
        total += product
    return total


def _evaluate_division(factor: str, values: Mapping[str, int]) -> int | None:
    if not factor.startswith("("):
        return None
    inner, divisor = factor[1:].rsplit(")//", 1)
    value = evaluate(inner, values)
    return None if value is None else value // int(divisor)


@_remember
def is_symbol(text: str) -> bool:
    """Whether `text` is a size in its canonical spelling."""
    try:
        return _spell(_parse(text)) == text
    except ShapeError:
        return False


@_remember
def names_in(size: Size) -> frozenset[str]:
    """The names that `size` is made of."""
    if isinstance(size, int):
        return frozenset()
    return frozenset(token for token in _TOKEN.findall(size) if token[0].isalpha() or token[0] == "_")


def solve(size: Size, number: int) -> tuple[str, int | None] | None:
    """The name that `size` is made of, and what it is when `size` is `number`: None where no whole number from 0 is that.

    None altogether where `size` is of several names, or of one in another way than `2*n+1`.
    """
    found = linear(size)
    if found is None:
        return None
    name, factor, rest = found
    value, left = divmod(number - rest, factor)
    return name, value if value >= 0 and not left else None


def told(shape: Shape, numbers: Iterable[int]) -> dict[str, int]:
    """The values of names, given that `shape` is `numbers`: that of each of its symbols, and that of a name which follows from one.

    So n follows from `2*n+1`.
    """
    values: dict[str, int] = {}
    for size, number in zip(shape, numbers, strict=False):
        if isinstance(size, str):
            values[size] = number
            name, value = solve(size, number) or (size, number)
            if value is not None:
                values[name] = value
    return values


@_remember
def linear(size: Size) -> tuple[str, int, int] | None:
    """Name, factor and rest of a size such as `2*n+1`; None for others."""
    terms = dict(_parse(size))
    rest = terms.pop((), 0)
    if len(terms) != 1:
        return None
    factors, factor = terms.popitem()
    return (factors[0], factor, rest) if len(factors) == 1 and not factors[0].startswith("(") else None


def terms(size: Size) -> dict[tuple[str, ...], int]:
    """The factors of each term of a size, and by what it is multiplied; the number alone has no factors. A floor division is a factor."""
    return {factors: coefficient for factors, coefficient in _parse(size).items() if coefficient}


def rename(size: Size, names: Mapping[str, Size]) -> Size:
    """`size` with every name in `names` replaced."""
    if isinstance(size, int) or not names_in(size) & names.keys():
        return size
    total: Size = 0
    for factors, coefficient in _parse(size).items():
        product: Size = coefficient
        for factor in factors:
            if factor.startswith("("):
                inner, divisor = factor[1:].rsplit(")//", 1)
                value = floor_divide(rename(inner, names), int(divisor))
            else:
                value = names.get(factor, factor)
            product = multiply(product, value)
        total = add(total, product)
    return total


def format_shape(shape: Shape | None) -> str:
    """`[n, 1, 8]`; `[*]` where the rank is not known."""
    return "[*]" if shape is None else "[" + ", ".join(str(size) for size in shape) + "]"


def _plus(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    total = dict(left)
    for factors, coefficient in right.items():
        total[factors] = total.get(factors, 0) + coefficient
    return total


def _times(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    total: _Polynomial = {}
    for a, p in left.items():
        for b, q in right.items():
            factors = tuple(sorted(a + b))
            total[factors] = total.get(factors, 0) + p * q
        if len(total) > _MAX_TERMS:
            raise ShapeError(f"a symbol may have {_MAX_TERMS} terms")
    return total


def _divided(polynomial: _Polynomial, divisor: int) -> _Polynomial:
    terms = {factors: coefficient for factors, coefficient in polynomial.items() if coefficient}
    if not any(terms) or all(coefficient % divisor == 0 for coefficient in terms.values()):
        return {factors: coefficient // divisor for factors, coefficient in terms.items()}
    return {(f"({_spell(terms)})//{divisor}",): 1}


def _spell(polynomial: _Polynomial) -> Size:
    terms = {factors: coefficient for factors, coefficient in polynomial.items() if coefficient}
    if not terms:
        return 0
    if list(terms) == [()]:
        return terms[()]
    text = ""
    for factors in sorted(terms, key=lambda factors: (not factors, factors)):
        coefficient = terms[factors]
        sign = "-" if coefficient < 0 else "+" if text else ""
        number = [str(abs(coefficient))] if abs(coefficient) != 1 or not factors else []
        text += sign + "*".join([*number, *factors])
    return _require_short(text)


def _require_short(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        raise ShapeError(f"a symbol may have {_MAX_LENGTH} characters")
    return text


def _parse(size: Size) -> _Polynomial:
    """Read a size; ShapeError where it is not one. Linear in its length, which is bounded."""
    if isinstance(size, int):
        return {(): size}
    tokens = _TOKEN.findall(_require_short(size))
    if "".join(tokens) != size or not tokens:
        raise ShapeError(f"{size!r} is not a size")
    polynomial, end = _parse_sum(tokens, 0, depth=0)
    if end != len(tokens):
        raise ShapeError(f"{size!r} is not a size")
    return polynomial


def _parse_sum(tokens: list[str], at: int, depth: int) -> tuple[_Polynomial, int]:
    total: _Polynomial = {}
    sign = 1
    if at < len(tokens) and tokens[at] == "-":
        sign, at = -1, at + 1
    while True:
        product: _Polynomial = {(): sign}
        while True:
            factor, at = _parse_factor(tokens, at, depth)
            product = _times(product, factor)
            if at >= len(tokens) or tokens[at] != "*":
                break
            at += 1
        total = _plus(total, product)
        if at >= len(tokens) or tokens[at] not in "+-":
            return total, at
        sign, at = (1 if tokens[at] == "+" else -1), at + 1


def _parse_factor(tokens: list[str], at: int, depth: int) -> tuple[_Polynomial, int]:
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
        return _divided(inner, divisor), at + 3
    if first in "+-*)" or first == "//":
        raise ShapeError("not a size")
    return {(first,): 1}, at + 1

"""Sizes: numbers, or symbols that have one value per run.

A symbol is a name (`n`) or a polynomial of names in a canonical spelling (`2*n+1`), so two sizes computed in different ways are equal if
and only if their spellings are. Operations outside polynomials become factors: a floor division `(h-3)//2`, a minimum `min(t,512)`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce

from oarlock.errors import ShapeError
from oarlock.ir.polynomial import TOKEN, Polynomial, divided, find_division, find_least, least, nonzero, parse, plus, spell, times

__all__ = [
    "Shape",
    "Size",
    "add",
    "can_be_equal",
    "divide",
    "evaluate",
    "floor_divide",
    "format_shape",
    "is_at_least",
    "is_polynomial",
    "is_same",
    "is_symbol",
    "linear",
    "maximum",
    "minimum",
    "multiply",
    "names_in",
    "product",
    "rename",
    "resolved",
    "solve",
    "solve_shape",
    "solve_shapes",
    "sum_of",
    "terms",
    "whole",
]

Size = int | str
Shape = tuple[Size, ...]

_MOST_RESOLVED = 64
_remember = lru_cache(maxsize=8192, typed=True)  # programs use the same few symbols repeatedly


@_remember
def add(left: Size, right: Size) -> Size:
    """Return `left + right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return spell(plus(parse(left), parse(right)))


def sum_of(sizes: Iterable[Size]) -> Size:
    """Return the sum of some sizes. Equal ones are counted, not added one by one."""
    counts = Counter(sizes)
    total: Size = sum(size * count for size, count in counts.items() if isinstance(size, int))
    for size, count in counts.items():
        total = total if isinstance(size, int) else add(total, multiply(size, count))
    return total


@_remember
def multiply(left: Size, right: Size) -> Size:
    """Return `left * right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return spell(times(parse(left), parse(right)))


def product(shape: Iterable[Size]) -> Size:
    """Return the number of elements of a shape."""
    total: Size = 1
    return reduce(multiply, shape, total)


@_remember
def floor_divide(left: Size, right: int) -> Size:
    """Return `left // right`, as a polynomial if every coefficient is divisible."""
    if isinstance(left, int):
        return left // right
    return spell(divided(parse(left), right))


@_remember
def minimum(left: Size, right: Size) -> Size:
    """Return the smaller of two sizes: one of them if provable, else a symbol such as `min(t,512)`."""
    return min(left, right) if isinstance(left, int) and isinstance(right, int) else spell(least([parse(left), parse(right)]))


def maximum(left: Size, right: Size) -> Size:
    """Return the larger of two sizes."""
    return add(add(left, right), multiply(minimum(left, right), -1))


def is_at_least(size: Size, number: Size) -> bool:
    """Return whether `size` is provably at least `number`."""
    return minimum(size, number) == number


def is_polynomial(size: Size) -> bool:
    """Return whether `size` is a number or a polynomial of names, without floor divisions and minimums."""
    return isinstance(size, int) or "(" not in size


def resolved(size: Size) -> set[Size]:
    """Return all sizes that result from choosing one argument of each minimum: t and 512 for `min(t,512)`. Beyond 64, `size` itself."""
    totals: set[Size] = {0}
    for factors, coefficient in terms(size).items():
        products: set[Size] = {coefficient}
        for factor in factors:
            options = _resolved_factor(factor)
            products = {multiply(product, option) for product in products for option in options}
        totals = {add(total, product) for total in totals for product in products}
        if len(totals) > _MOST_RESOLVED:
            return {size}
    return totals


def _resolved_factor(factor: str) -> set[Size]:
    division, choices = find_division(factor), find_least(factor)
    if division is not None:
        return {floor_divide(dividend, division[1]) for dividend in resolved(division[0])}
    return {factor} if choices is None else {option for choice in choices for option in resolved(choice)}


def divide(left: Size, right: Size) -> Size | None:
    """Return the exact quotient of two sizes, or None if there is none or `right` is 0."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right if right and left % right == 0 else None
    rest, divisor = nonzero(parse(left)), nonzero(parse(right))
    quotient: Polynomial = {}
    while rest and divisor:
        first, last = max(rest, key=_rank), max(divisor, key=_rank)
        factors = Counter(first)
        factors.subtract(last)
        if rest[first] % divisor[last] or any(count < 0 for count in factors.values()):
            return None
        term = {tuple(sorted(factors.elements())): rest[first] // divisor[last]}
        quotient |= term
        rest = nonzero(plus(rest, times({(): -1}, times(term, divisor))))
    return spell(quotient) if divisor else None


def _rank(factors: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Sort key of monomials that is compatible with multiplication: by degree, then by the sorted factors."""
    return len(factors), factors


@_remember
def whole(size: Size) -> Size:
    """Return the size with whole multiples moved out of its divisions: `(n)//2` for `(n-2)//2+1`. It makes more equal sizes spell equal."""
    return size if isinstance(size, int) or "//" not in size else spell(_whole(parse(size)))


def is_same(left: Size, right: Size) -> bool:
    """Return whether two sizes are equal for all values of their symbols, as far as `whole` can prove it."""
    return left == right or whole(left) == whole(right)


def can_be_equal(left: Size, right: Size) -> bool:
    """Return whether two sizes are equal for some values of their names, which are integers >= 0.

    False is certain: `n+1` and `n`, `2*n` and 3, `n+5` and 3. Otherwise, and for a size that begins with "?", the result is True.
    """
    if any(isinstance(size, str) and size.startswith("?") for size in (left, right)):
        return True
    difference = nonzero(plus(parse(left), times({(): -1}, parse(right))))
    if not all(map(is_polynomial, (factor for factors in difference for factor in factors))):
        return not (is_at_least(left, add(right, 1)) or is_at_least(right, add(left, 1)))
    rest = difference.pop((), 0)
    if not rest:
        return True
    if all(coefficient * rest > 0 for coefficient in difference.values()):
        return False
    return rest % math.gcd(*difference.values()) == 0


def _whole(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial with the coefficients in divisions reduced below the divisor, and nested divisions merged."""
    total: Polynomial = {}
    for factors, coefficient in polynomial.items():
        product: Polynomial = {(): coefficient}
        for factor in factors:
            product = times(product, _whole_factor(factor))
        total = plus(total, product)
    return nonzero(total)


def _whole_factor(factor: str) -> Polynomial:
    division, choices = find_division(factor), find_least(factor)
    if division is not None:
        return _whole_quotient(_whole(parse(division[0])), division[1])
    return {(factor,): 1} if choices is None else least([_whole(parse(choice)) for choice in choices])


def _whole_quotient(dividend: Polynomial, divisor: int) -> Polynomial:
    quotient = {factors: coefficient // divisor for factors, coefficient in dividend.items()}
    rest = nonzero({factors: coefficient % divisor for factors, coefficient in dividend.items()})
    inner = [factors for factors in rest if factors]
    if not inner:
        return quotient
    if len(inner) == 1 and rest[inner[0]] == 1 and len(inner[0]) == 1 and inner[0][0].startswith("("):
        further, by = find_division(inner[0][0])  # type: ignore[misc]
        further = _whole(parse(further))  # (x // a + k) // b is (x + k * a) // (a * b)
        return plus(quotient, _whole_quotient(plus(further, {(): rest.get((), 0) * by}), by * divisor))
    return plus(quotient, {(f"({spell(rest)})//{divisor}",): 1})


def evaluate(size: Size, values: Mapping[str, int]) -> int | None:
    """Return the value of `size` for these values of names, or None if one is missing."""
    if isinstance(size, int):
        return size
    if size in values:
        return values[size]
    total = 0
    for factors, coefficient in parse(size).items():
        product = coefficient
        for factor in factors:
            value = values.get(factor)
            if value is None:
                value = _evaluate_factor(factor, values)
            if value is None:
                return None
            product *= value
        total += product
    return total


def _evaluate_factor(factor: str, values: Mapping[str, int]) -> int | None:
    division, choices = find_division(factor), find_least(factor)
    if division is not None:
        value = evaluate(division[0], values)
        return None if value is None else value // division[1]
    numbers = [evaluate(choice, values) for choice in choices or ()]
    return None if not numbers or None in numbers else min(numbers)  # type: ignore[type-var]


@_remember
def is_symbol(text: str) -> bool:
    """Return whether `text` is a size in its canonical spelling."""
    try:
        return spell(parse(text)) == text
    except ShapeError:
        return False


@_remember
def names_in(size: Size) -> frozenset[str]:
    """Return the names in `size`."""
    if isinstance(size, int):
        return frozenset()
    return frozenset(text for text in TOKEN.findall(size) if text != "min(" and (text[0].isalpha() or text[0] == "_"))


def solve(size: Size, number: int) -> tuple[str, int | None] | None:
    """Return the name in `size`, and its value if `size` is `number`; the value is None if no integer >= 0 fits.

    Return None if `size` is not of the form `2*n+1` with one name.
    """
    found = linear(size)
    if found is None:
        return None
    name, factor, rest = found
    value, left = divmod(number - rest, factor)
    return name, value if value >= 0 and not left else None


def solve_shape(shape: Shape, numbers: Iterable[int]) -> dict[str, int]:
    """Return the values of symbols and names, given that `shape` is `numbers`. Names are solved for: `2*n+1` gives n."""
    values: dict[str, int] = {}
    for size, number in zip(shape, numbers, strict=False):
        if isinstance(size, str):
            values[size] = number
            name, value = solve(size, number) or (size, number)
            if value is not None:
                values[name] = value
    return values


def solve_shapes(shapes: Iterable[Shape], numbers: Iterable[Sequence[int]]) -> dict[str, int]:
    """Return the values of names, given that each shape is the corresponding numbers. For a repeated name, the first shape wins."""
    values: dict[str, int] = {}
    for shape, each in zip(shapes, numbers, strict=True):
        values = solve_shape(shape, each) | values
    return values


@_remember
def linear(size: Size) -> tuple[str, int, int] | None:
    """Return name, factor and constant of a size such as `2*n+1`; None for others."""
    terms = dict(parse(size))
    rest = terms.pop((), 0)
    if len(terms) != 1:
        return None
    factors, factor = terms.popitem()
    return (factors[0], factor, rest) if len(factors) == 1 and is_polynomial(factors[0]) else None


def terms(size: Size) -> dict[tuple[str, ...], int]:
    """Return the coefficient of each term of a size, by its factors; the constant has no factors.

    Floor divisions and minimums are factors: see `find_division` and `find_least` in `polynomial.py`.
    """
    return {factors: coefficient for factors, coefficient in parse(size).items() if coefficient}


def rename(size: Size, names: Mapping[str, Size]) -> Size:
    """Return `size` with all names in `names` replaced."""
    if isinstance(size, int) or not names_in(size) & names.keys():
        return size
    total: Size = 0
    for factors, coefficient in parse(size).items():
        product: Size = coefficient
        for factor in factors:
            product = multiply(product, _renamed_factor(factor, names))
        total = add(total, product)
    return total


def _renamed_factor(factor: str, names: Mapping[str, Size]) -> Size:
    division, choices = find_division(factor), find_least(factor)
    if division is not None:
        return floor_divide(rename(division[0], names), division[1])
    return names.get(factor, factor) if choices is None else reduce(minimum, (rename(choice, names) for choice in choices))


def format_shape(shape: Shape | None) -> str:
    """Format a shape: `[n, 1, 8]`, or `[*]` if the rank is unknown."""
    return "[*]" if shape is None else "[" + ", ".join(str(size) for size in shape) + "]"

"""Check the size expressions of a `.pt2` archive: only arithmetic on symbols, of bounded cost.

PyTorch evaluates them as Python, and sympy expands them.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from oarlock.errors import FormatError

__all__ = ["is_symbol", "require_degree", "require_expression"]

_FUNCTIONS = {
    *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv", "PowByNatural"),
    *("IntTrueDiv", "FloatTrueDiv", "ToFloat", "TruncToInt", "RoundToInt", "Max", "Min", "Not", "And", "Or"),
    *("Add", "Mul", "Pow", "Integer", "Rational", "Float", "Eq", "Ne"),
    *("Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan"),
}
_SYMBOL = re.compile(r"[a-z]{1,4}\d{1,6}|int_oo|True|False", re.ASCII)
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.Invert, ast.USub, ast.UAdd, ast.Not),
    *(ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
_LONGEST = 1000
_MOST_TERMS = 256
_MOST_BITS = 4096
_HIGHEST_DEGREE = 32


class _Extent(NamedTuple):
    """Upper bounds for an expression after expansion: its number of terms, and the bits of its numbers."""

    terms: int
    bits: float


def require_expression(text: object) -> None:
    """Raise FormatError unless `text` is an arithmetic expression on symbols that is cheap to evaluate."""
    try:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError
        tree = ast.parse(text.strip(), mode="eval")
        names = {id(name) for node in ast.walk(tree) if _is_symbol(node) for name in ast.walk(node)}
        if not all(id(node) in names or _is_arithmetic(node) for node in ast.walk(tree)):
            raise ValueError
        _extent(tree.body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise FormatError(f"the archive has an invalid size: {text!r:.80}") from None


def is_symbol(name: str) -> bool:
    """Return whether `name` is a PyTorch symbol. The number of digits is limited because PyTorch counts up to it."""
    return bool(_SYMBOL.fullmatch(name))


def _is_symbol(node: ast.AST) -> bool:
    """Return whether `node` is `Symbol('s0', integer=True)`, as sympy prints a symbol."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Symbol" or len(node.args) != 1:
        return False
    name, facts = node.args[0], [item.value for item in node.keywords]
    known = isinstance(name, ast.Constant) and isinstance(name.value, str) and _SYMBOL.fullmatch(name.value)
    return bool(known) and all(isinstance(fact, ast.Constant) and isinstance(fact.value, bool) for fact in facts)


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    if isinstance(node, ast.Name):
        return bool(_SYMBOL.fullmatch(node.id)) or node.id in _FUNCTIONS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and abs(node.value) < 2**63
    return isinstance(node, _NODES)


def _extent(node: ast.expr) -> _Extent:
    """Return the extent of an arithmetic expression. Raises ValueError if it is too large or has a power that is not constant."""
    found = _extent_of(node)
    if found.terms > _MOST_TERMS or found.bits > _MOST_BITS:
        raise ValueError
    return found


def _extent_of(node: ast.expr) -> _Extent:
    kind = type(getattr(node, "op", None)).__name__
    if isinstance(node, ast.Call):
        kind = node.func.id  # type: ignore[attr-defined]
        parts = [] if kind == "Symbol" else [_extent(item) for item in node.args]
        if kind in ("Pow", "PowByNatural"):
            return _power(parts[0], node.args[1]) if len(parts) == 2 else _refuse()
    elif isinstance(node, ast.BinOp):
        parts = [_extent(node.left), _extent(node.right)]
        if kind == "Pow":
            return _power(parts[0], node.right)
    else:
        parts = [_extent(item) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)]
    if not parts:
        number = getattr(node, "value", 0)
        return _Extent(1, math.log2(abs(number) + 2))
    if kind in ("Add", "Sub"):
        return _Extent(sum(part.terms for part in parts), sum(part.bits for part in parts))
    return _Extent(math.prod(part.terms for part in parts), sum(part.bits for part in parts))


def _power(base: _Extent, exponent: ast.expr) -> _Extent:
    if isinstance(exponent, ast.Call) and exponent.func.id == "Integer" and len(exponent.args) == 1:  # type: ignore[attr-defined]
        exponent = exponent.args[0]
    if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub):
        exponent = exponent.operand
    if not isinstance(exponent, ast.Constant) or not isinstance(exponent.value, int) or exponent.value > _MOST_BITS:
        return _refuse()
    return _Extent(base.terms ** min(exponent.value, 64) if base.terms > 1 else 1, base.bits * exponent.value)


def _refuse() -> _Extent:
    raise ValueError


def require_degree(document: object) -> None:
    """Raise FormatError if the nodes of a document multiply numbers until sizes grow without bound.

    Nodes are visited in order; a nested graph comes after the node that holds it. A value that no number node computes has degree 1. An
    input of a nested graph may be any number of the enclosing graph, so it has the highest degree so far.
    """
    degrees: dict[object, int] = {}
    highest, pending = 1, [document]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += reversed(item)
        elif isinstance(item, dict):
            if isinstance(item.get("target"), str) and not item["target"].startswith("torch.ops."):
                found = _degree(item["target"], list(_operands(item.get("inputs"))), degrees)
                highest = max(highest, found)
                if highest > _HIGHEST_DEGREE:
                    raise FormatError(f"the archive has a size to a power above {_HIGHEST_DEGREE}")
                degrees.update(dict.fromkeys(_operands(item.get("outputs")), found))
            inner = item.get("graph")
            if isinstance(inner, dict):
                degrees.update(dict.fromkeys(_operands(inner.get("inputs")), highest))
            pending += reversed(item.values())


def _degree(target: str, operands: list[object], degrees: Mapping[object, int]) -> int:
    """Return the degree of the result of `target`. Literals have degree 1, as they can be as large as a symbol."""
    found = [degrees.get(operand, 1) for operand in operands]
    if target == "_operator.pow":
        exponent = operands[-1] if operands else None
        return max(found) * exponent if isinstance(exponent, int) and exponent >= 0 else _HIGHEST_DEGREE + 1
    return sum(found) if target == "_operator.mul" else max(found, default=1)


def _operands(value: object) -> Iterator[object]:
    """Iterate over the names and numbers anywhere in a node's arguments."""
    if isinstance(value, list):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("as_name", "as_int", "as_float"):
                yield item if isinstance(item, str | int | float) else None
            else:
                yield from _operands(item)

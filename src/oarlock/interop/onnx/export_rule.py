"""The export rules of operators, by operator name."""

from collections.abc import Callable
from typing import Any

from oarlock.errors import DeclarationError

__all__ = ["export", "export_block", "export_of_complex", "find_block_rule", "find_complex_rule", "find_rule", "has_rule", "rules"]

Rule = Callable[..., Any]

_RULES: dict[str, Rule] = {}
_BLOCK_RULES: dict[str, Rule] = {}
_COMPLEX_RULES: dict[str, Rule] = {}


def export(*types: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the export rule of operators of these types.

        @export("square")
        def square(g, x):
            return g("Mul", x, x)

    A rule is called like the operator's kernel, after the graph: inputs by position as `Value`s, a list for a variadic slot, None for an
    omitted one; attributes by name. It returns one name per output, structured like the kernel's result, or raises `Unsupported` if ONNX
    cannot express the case. Rules of custom operators are declared in the same way.
    """

    def declare(rule: Rule) -> Rule:
        _declare(_RULES, types, rule)
        return rule

    return declare


def export_of_complex(*types: str) -> Callable[[Rule], Rule]:
    """Register the export rule of operators of these types for complex inputs or outputs.

    ONNX has no operators on complex numbers: complex[...s] is a `Value` float[...s 2] of its parts. Without such a rule, the op is
    unsupported.
    """

    def declare(rule: Rule) -> Rule:
        _declare(_COMPLEX_RULES, types, rule)
        return rule

    return declare


def export_block(type: str) -> Callable[[Rule], Rule]:
    """Register the export rule of an operator that owns a block: a function of the lowering, the graph and the op."""

    def declare(rule: Rule) -> Rule:
        _declare(_BLOCK_RULES, (type,), rule)
        return rule

    return declare


def _declare(rules: dict[str, Rule], types: tuple[str, ...], rule: Rule) -> None:
    for type in types:
        if type in rules:
            raise DeclarationError(f'"{type}" already has an export rule')
        rules[type] = rule


def find_rule(type: str) -> Rule | None:
    """Return the rule of an operator, or None."""
    return _RULES.get(type)


def find_complex_rule(type: str) -> Rule | None:
    """Return the rule of an operator on complex numbers, or None."""
    return _COMPLEX_RULES.get(type)


def find_block_rule(type: str) -> Rule | None:
    return _BLOCK_RULES.get(type)


def has_rule(type: str) -> bool:
    return type in _RULES or type in _BLOCK_RULES or type in _COMPLEX_RULES


def rules() -> list[str]:
    """Return the names of all operators that have a rule."""
    return sorted({*_RULES, *_BLOCK_RULES, *_COMPLEX_RULES})

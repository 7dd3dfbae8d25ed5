"""How an operator is said in ONNX: a rule for each, found by the operator's name."""

from collections.abc import Callable
from typing import Any

from oarlock.errors import DeclarationError

__all__ = ["export", "export_block", "export_of_complex", "find_block_rule", "find_complex_rule", "find_rule", "has_rule", "rules"]

Rule = Callable[..., Any]

_RULES: dict[str, Rule] = {}
_BLOCK_RULES: dict[str, Rule] = {}
_COMPLEX_RULES: dict[str, Rule] = {}


def export(*types: str) -> Callable[[Rule], Rule]:
    """Declare how operators of these types become nodes.

        @export("square")
        def square(g, x):
            return g("Mul", x, x)

    A rule is called as the operator's kernel is: inputs by position, as `Value`s, a list of a variadic slot and None of one that is left
    out; attributes by name. Before them it is given the graph. It returns what the kernel returns: a name for each output. It raises
    `Unsupported` for what ONNX cannot say. Rules of operators of your own are declared the same way.
    """

    def declare(rule: Rule) -> Rule:
        _declare(_RULES, types, rule)
        return rule

    return declare


def export_of_complex(*types: str) -> Callable[[Rule], Rule]:
    """Declare how operators of these types become nodes where they take or give complex numbers.

    ONNX has no operators for these: what is complex[...s] is a `Value` float[...s 2] of its parts. What has no such rule is refused.
    """

    def declare(rule: Rule) -> Rule:
        _declare(_COMPLEX_RULES, types, rule)
        return rule

    return declare


def export_block(type: str) -> Callable[[Rule], Rule]:
    """Declare how an operator that owns a block is exported: by a function of the lowering, the graph and the op."""

    def declare(rule: Rule) -> Rule:
        _declare(_BLOCK_RULES, (type,), rule)
        return rule

    return declare


def _declare(rules: dict[str, Rule], types: tuple[str, ...], rule: Rule) -> None:
    for type in types:
        if type in rules:
            raise DeclarationError(f'"{type}" has a rule for its export already')
        rules[type] = rule


def find_rule(type: str) -> Rule | None:
    """The rule of an operator; None where it has none."""
    return _RULES.get(type)


def find_complex_rule(type: str) -> Rule | None:
    """The rule of an operator on complex numbers; None where it has none."""
    return _COMPLEX_RULES.get(type)


def find_block_rule(type: str) -> Rule | None:
    return _BLOCK_RULES.get(type)


def has_rule(type: str) -> bool:
    return type in _RULES or type in _BLOCK_RULES or type in _COMPLEX_RULES


def rules() -> list[str]:
    """The operators that have a rule, by name."""
    return sorted({*_RULES, *_BLOCK_RULES, *_COMPLEX_RULES})

"""The import rules of ONNX operators: one function each, with inputs by position and attributes by name."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

__all__ = ["Rule", "Unsupported", "find_rule", "fold", "folds", "rule", "rules"]

NEVER = 2**31


class Unsupported(Exception):  # noqa: N818  a reason, collected into one error
    """A case that a rule does not support: the reason, and a hint. `unknown` is the parameter whose value must be known."""

    def __init__(self, reason: str, *, hint: str | None = None, unknown: str | None = None):
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.unknown = unknown


@dataclass(frozen=True)
class Rule:
    """The rule of one operator, from opset `since` up to opset `until`, exclusive.

    The positional parameters of `function` are the inputs. They are passed as variables, except that `known` inputs are passed as known
    values and `either` inputs as known values if possible. Its keyword-only parameters are the attributes, with ONNX's defaults; `outputs`
    is the number of outputs of the node, `opset` the operator set version, `importer` the importer.
    """

    function: Callable[..., Any]
    since: int
    until: int
    known: frozenset[str]
    either: frozenset[str]
    folds: bool
    inputs: tuple[str, ...]
    variadic: str | None
    attributes: dict[str, object]
    least: int


rules: dict[str, list[Rule]] = {}
folds: dict[str, Callable[..., Any]] = {}


def rule(
    *types: str, since: int = 1, until: int = NEVER, known: Collection[str] = (), either: Collection[str] = (), folds: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the rule of operators of the default domain. With `folds`, it may be evaluated for known inputs."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        inputs = [item for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
        variadic = next((item.name for item in parameters if item.kind is item.VAR_POSITIONAL), None)
        attributes = {item.name: item.default for item in parameters if item.kind is item.KEYWORD_ONLY}
        least = sum(item.default is item.empty for item in inputs)
        declared = Rule(
            function,
            since,
            until,
            frozenset(known),
            frozenset(either),
            folds,
            tuple(item.name for item in inputs),
            variadic,
            attributes,
            least,
        )
        for type in types:
            assert all(other.until <= since or until <= other.since for other in rules.get(type, ())), f"two rules of {type}"
            rules.setdefault(type, []).append(declared)
        return function

    return declare


def fold(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that computes with symbolic sizes, given as object arrays. It returns None if it cannot."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            assert type not in folds, f"two folds of {type}"
            folds[type] = function
        return function

    return declare


def find_rule(type: str, opset: int) -> Rule | None:
    """Return the rule of an operator in an opset, or None."""
    return next((item for item in rules.get(type, ()) if item.since <= opset < item.until), None)

"""The import rules of ONNX operators: one function each, with inputs by position and attributes by name; and unsupported nodes."""

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from oarlock.errors import UnsupportedError

__all__ = ["Gap", "Rule", "Unsupported", "find_rule", "fold", "folds", "refuse", "rule", "rules"]

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


# Unsupported nodes


_MOST_LINES = 24


@dataclass(frozen=True)
class Gap:
    """An unsupported node: its operator, its name and the reason. `unknown` is the value that would have to be known."""

    operator: str
    node: str
    reason: str
    hint: str | None = None
    unknown: str | None = None


def refuse(gaps: Sequence[Gap], name: str, nodes: int) -> UnsupportedError:
    """Return the error that reports all gaps, grouped by operator and reason; its `refusals` are the gaps."""
    groups: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        groups.setdefault((gap.operator, gap.reason), []).append(gap)
    lines = []
    for (operator, reason), found in groups.items():
        names = [gap.node for gap in found[:3] if gap.node]
        more = f", and {len(found) - len(names)} more" if names and len(found) > len(names) else ""
        where = f" ({', '.join(names)}{more})" if names else f" ({len(found)} nodes)" if len(found) > 1 else ""
        lines.append(f"{operator}{where}: {reason}"[:400])
    left = len(lines) - _MOST_LINES
    shown = lines[:_MOST_LINES] + ([f"and {left} more reasons"] if left > 0 else [])
    hints = list(dict.fromkeys(gap.hint for gap in gaps if gap.hint))
    error = UnsupportedError(
        f'"{name}" cannot be imported: {len(gaps)} of its {nodes} nodes are not supported',
        given=shown,
        hint="; ".join(hints[:2]) or None,
    )
    error.refusals = tuple(gaps)  # type: ignore[attr-defined]
    return error

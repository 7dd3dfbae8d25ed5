"""The registry of rules, by ATen overload.

@rule("aten.silu.default")
def silu(self):                         # parameters have the names in the overload's schema
    return activation.silu(self)

@rule("aten.add.Tensor", "aten.add.Scalar", promote=("self", "other")) def add(self, other, *, alpha=1): ...
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["RESULT", "Rule", "Unsupported", "find_rule", "load_rules", "rule"]

RESULT = "result"
"""A parameter of this name receives the type of the result in the export: a `TensorType`, or a tuple of them."""


class Unsupported(Exception):  # noqa: N818  not an error of the program: the importer collects these and raises one for all
    """A case that a rule does not support. `hint` suggests an alternative, if there is one."""

    def __init__(self, why: str, *, hint: str | None = None):
        super().__init__(why)
        self.why = why
        self.hint = hint


@dataclass(frozen=True)
class Rule:
    """A function from the arguments of an overload to variables for its results, and the promotion of its arguments.

    Tensors are passed as `Var`; a SymInt as a size (a number or a symbol), or as int64[] if it is only known at run time; lists as lists of
    these; numbers, strings, bools and None unchanged; dtypes as Oarlock's. The arguments in `promote` (variables, numbers or lists of
    variables) are cast to PyTorch's common dtype; with `to_float`, integers become floats, as for `sin`. Shapes are not broadcast. A rule
    returns a variable, or a tuple with one per result, with None for results that it does not compute.
    """

    function: Callable[..., object]
    parameters: tuple[str, ...]
    promote: tuple[str, ...]
    to_float: bool

    @property
    def wants_result(self) -> bool:
        return RESULT in self.parameters


_RULES: dict[str, Rule] = {}


def rule(*overloads: str, promote: Sequence[str] = (), to_float: bool = False) -> Callable:
    """Register the decorated function as the rule of `overloads`, such as "aten.silu.default".

    Schema arguments that the function does not take must have their defaults; devices, layouts and memory formats may have any value.
    """

    def declare(function: Callable[..., object]) -> Callable[..., object]:
        made = Rule(function, tuple(inspect.signature(function).parameters), tuple(promote), to_float)
        for overload in overloads:
            assert overload not in _RULES, f"{overload} has a rule already"
            _RULES[overload] = made
        return function

    return declare


@cache
def load_rules() -> dict[str, Rule]:
    """Import all files of this folder and return their rules."""
    package = __package__ or ""
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{found.name}")
    return _RULES


def find_rule(overload: str) -> Rule | None:
    """Return the rule of an overload, or None."""
    return load_rules().get(overload)

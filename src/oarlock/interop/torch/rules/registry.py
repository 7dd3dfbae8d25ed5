"""Rules by the overload of ATen that they stand for.

@rule("aten.silu.default")
def silu(self):                         # parameters are called as the arguments of the overload's schema
    return activation.silu(self)

@rule("aten.add.Tensor", "aten.add.Scalar", promote=("self", "other"))
def add(self, other, *, alpha=1): ...
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["RESULT", "Rule", "Unsupported", "find_rule", "load_rules", "rule"]

RESULT = "result"
"""A parameter of this name is given the type that the export states: a `TensorType`, or a tuple of them."""


class Unsupported(Exception):  # noqa: N818  it is no error of the program: the importer collects these, and raises one for all
    """A case that a rule cannot write. `hint` says what to do about it, where that is known."""

    def __init__(self, why: str, *, hint: str | None = None):
        super().__init__(why)
        self.why = why
        self.hint = hint


@dataclass(frozen=True)
class Rule:
    """A function from the arguments of an overload to the variables that are its results, and how its arguments are promoted.

    A tensor is given as a `Var`, a SymInt as a size - a number or a symbol - or as int64[] where only a run tells it; lists are lists of
    these; numbers, text, bools and None are themselves, a dtype is ours. The arguments `promote` - variables, numbers, or lists of
    variables - are cast to the dtype in which PyTorch computes on them; with `to_float`, integers become floats, as for `sin`. A variable
    on its own keeps its shape. A rule returns a variable, or a tuple with one for each result, None for what it does not give.
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
    """Declare the function below to be the rule of `overloads`, such as "aten.silu.default".

    Arguments of the schema that it does not take must have their defaults; devices, layouts and memory formats may be anything.
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
    """All rules: the files of this folder are imported."""
    package = __package__ or ""
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{found.name}")
    return _RULES


def find_rule(overload: str) -> Rule | None:
    """The rule of an overload; None where there is none."""
    return load_rules().get(overload)

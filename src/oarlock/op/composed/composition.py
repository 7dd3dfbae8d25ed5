"""The decorator of functions that append several ops: it checks the first argument, and removes the ops on errors."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.registry.creator import require_type

__all__ = ["composition", "require_variables"]

P = ParamSpec("P")
R = TypeVar("R")


def composition(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose first argument, or all of whose positional arguments, are variables.

    If the function raises, all ops that it has appended are removed. The result raises ArgumentError for an argument that is not a
    variable.
    """
    parameter = next(iter(inspect.signature(function).parameters.values()))
    several = parameter.kind is parameter.VAR_POSITIONAL

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if several:
            first = require_variables(arguments, function.__name__)[0]
        else:
            given = arguments[0] if arguments else keywords.get(parameter.name)
            first = require_type(given, f"{function.__name__}: {parameter.name}")
        with undone_on_error(first.block.program):
            return function(*arguments, **keywords)

    return call


def require_variables(values: object, what: str) -> list[Var]:
    """Return the variables as a list. Raises ArgumentError for none, or for another value."""
    found = list(values) if isinstance(values, list | tuple) else [values]
    if not found:
        raise ArgumentError(f"{what}: no variable is given", location=here())
    return [require_type(each, f"{what}: each argument") for each in found]

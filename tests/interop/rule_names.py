"""The names that a rule of an import uses, read off its code: operators that it calls, by name or through a table."""

import re
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType

import oarlock as ol
from oarlock.registry import standard

__all__ = ["names_in", "our_name"]


def names_in(function: Callable[..., object], package: str) -> set[str]:
    """The names in a function, in those of the package that it calls, and in the tables that it was made of."""
    return set(_names(function, package, set()))


def _names(function: Callable[..., object], package: str, seen: set[int]) -> Iterator[str]:
    if id(function) in seen or not isinstance(function, FunctionType):
        return
    seen.add(id(function))
    names = list(_in_code(function.__code__))
    yield from names
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in [*held, *(item for group in held if isinstance(group, tuple | list) for item in group)]:
        if isinstance(value, str):
            yield value
        yield from _names(value, package, seen)  # type: ignore[arg-type]
    for name in names:
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__module__.startswith(package):
            yield from _names(called, package, seen)


def _in_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _in_code(constant)


def our_name(foreign: str) -> str | None:
    """The operator or composition of ours that is called as one of another library; None where none is."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", foreign).lower()
    plain = words.removeprefix("special_").removeprefix("linalg_").strip("_")
    return next(
        (name for name in (words, plain) if standard.find(name) is not None or isinstance(vars(ol.op).get(name), FunctionType)), None
    )

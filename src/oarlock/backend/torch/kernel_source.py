"""The source of a kernel, read: what it returns, on which conditions, and what it calls."""

import ast
import linecache
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

__all__ = [
    "Returned",
    "Tests",
    "definition",
    "definitions",
    "find_function",
    "find_ours",
    "is_check",
    "names_in",
    "only_call",
    "only_chooses",
    "path_of",
    "read_definition",
    "returned",
]

Tests = tuple[tuple[ast.expr, bool], ...]


class Returned(NamedTuple):
    """An expression that a kernel returns, and the tests that hold where it does: each with its outcome."""

    value: ast.expr
    tests: Tests


definitions: WeakKeyDictionary[FunctionType, ast.FunctionDef | None] = WeakKeyDictionary()  # also of what was derived


def definition(kernel: Callable[..., object]) -> ast.FunctionDef | None:
    """The definition of a function at the top of a module; None of what else there is, and of what cannot be read."""
    if not isinstance(kernel, FunctionType) or kernel.__closure__:
        return None
    if kernel not in definitions:
        definitions[kernel] = read_definition(kernel)
    return definitions[kernel]


def read_definition(kernel: FunctionType) -> ast.FunctionDef | None:
    """The definition as `definition` gives it, read anew, so that it may be changed."""
    lines = linecache.getlines(kernel.__code__.co_filename, kernel.__globals__)[kernel.__code__.co_firstlineno - 1 :]
    first = next((number for number, line in enumerate(lines) if line.startswith("def ")), None)
    if first is None:
        return None
    after = (number for number, line in enumerate(lines) if number > first and line[:1] not in (" ", ")", "\n", "#", ""))
    try:
        (node,) = ast.parse("".join(lines[first : next(after, None)])).body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.FunctionDef) and node.name == kernel.__name__ else None


def returned(kernel: Callable[..., object], checks: Collection[Callable[..., object]] = ()) -> list[Returned]:
    """The expressions that `kernel` returns, where it does nothing else but choose, beside some `checks`; none where it does."""
    node = definition(kernel)
    body = [] if node is None else [statement for statement in node.body if not is_check(kernel, statement, checks)]
    return list(_returned(body, ()))


def only_chooses(kernel: Callable[..., object]) -> bool:
    """Whether a kernel gives its inputs no other values before it returns."""
    node = definition(kernel)
    return node is not None and _only_choose(node.body)


def _only_choose(body: list[ast.stmt]) -> bool:
    """Whether there are only choices between returns. Statements stand in bodies alone, so no expression is looked through."""
    return all(
        isinstance(each, ast.Return | ast.Expr) or (isinstance(each, ast.If) and _only_choose(each.body) and _only_choose(each.orelse))
        for each in body
    )


def _returned(body: list[ast.stmt], tests: Tests) -> Iterator[Returned]:
    for statement in body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield from _choices(statement.value, tests)
            return
        if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Return):
            yield from _returned(statement.body, (*tests, (statement.test, True)))
            tests = (*tests, (statement.test, False))
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):  # but for a docstring
            return


def _choices(value: ast.expr, tests: Tests) -> Iterator[Returned]:
    if isinstance(value, ast.IfExp):
        yield from _choices(value.body, (*tests, (value.test, True)))
        yield from _choices(value.orelse, (*tests, (value.test, False)))
    else:
        yield Returned(value, tests)


def path_of(value: ast.expr) -> tuple[str, ...]:
    """The parts of a dotted name; none of another expression."""
    names: list[str] = []
    while isinstance(value, ast.Attribute):
        names.append(value.attr)
        value = value.value
    return (value.id, *reversed(names)) if isinstance(value, ast.Name) else ()


def find_function(kernel: Callable[..., object], call: ast.expr) -> Callable[..., Any] | None:
    """The function of PyTorch that `call`, an expression in `kernel`, calls; None where it calls none."""
    path = path_of(call.func) if isinstance(call, ast.Call) else ()
    found: Any = getattr(kernel, "__globals__", {}).get(path[0]) if path else None
    if found is not torch and found is not torch.ops.aten:
        return None
    for name in path[1:]:
        found = getattr(found, name, None)
    return found


def find_ours(kernel: Callable[..., object], call: ast.expr) -> Callable[..., Any] | None:
    """The function that `call`, an expression in `kernel`, calls by a plain name; None where it calls none."""
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return getattr(kernel, "__globals__", {}).get(call.func.id) if named else None  # type: ignore[attr-defined]


def only_call(kernel: Callable[..., object]) -> Callable[..., Any] | None:
    """The function of PyTorch that a kernel without attributes does nothing but call, with its inputs in their order; else None."""
    node, found = definition(kernel), returned(kernel)
    if node is None or len(found) != 1 or node.args.kwonlyargs or not only_chooses(kernel):
        return None
    (value, _), parameters = found[0], [argument.arg for argument in node.args.args]
    plain = isinstance(value, ast.Call) and not value.keywords and [getattr(argument, "id", None) for argument in value.args] == parameters
    return find_function(kernel, value) if plain else None


def names_in(value: ast.expr) -> list[str]:
    """The names that `value` consists of: one, or several in a tuple; none where there is something else."""
    items = value.elts if isinstance(value, ast.Tuple) else [value]
    return [item.id for item in items if isinstance(item, ast.Name)] if all(isinstance(item, ast.Name) for item in items) else []


def is_check(kernel: Callable[..., object], statement: ast.stmt, checks: Collection[Callable[..., object]]) -> bool:
    """Whether a statement does nothing but call one of `checks`, or does so for each of several things."""
    if isinstance(statement, ast.For):
        return all(is_check(kernel, each, checks) for each in (*statement.body, *statement.orelse))
    return isinstance(statement, ast.Expr) and find_ours(kernel, statement.value) in checks

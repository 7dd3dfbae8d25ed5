"""The lowering of a kernel, or of a variant of it, for some ops: one call of PyTorch, which a plan writes in the line of the op.

    def linear(x, w, bias=None):                                        two expressions, each with where it holds:
        if x.dim() == 2:
            return torch.mm(x, w) if bias is None else ...              torch.mm(x, w)           x has 2 axes, no bias
        ...                                                             torch.addmm(bias, x, w)  x has 2 axes, a bias

Lowered are functions that go element by element, sums, and products of matrices: of inputs, each once, and integers; as keywords, of
attributes too, and of the numbers that inputs hold. A transposed input counts as one, and one as rows, or laid as another, counts where
it is such already.
"""

import ast
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch

from oarlock.backend.torch.derivation import is_pointwise, laid_as
from oarlock.backend.torch.expression import Expression
from oarlock.backend.torch.kernel_source import Tests, find_function, find_ours, path_of, returned
from oarlock.registry.declaration import Operator
from oarlock.tensor.indexing import as_rows

__all__ = ["derive_expressions"]

_OTHERS = {"mm", "addmm", "sum"}  # that do not go element by element
_FORMLESS = range(4)  # axes: only what has four may lie in another format


def derive_expressions(operator: Operator, function: Callable[..., object]) -> list[Expression]:
    """The expressions that `function`, the kernel of `operator` or a variant of it, lowers to, each on its conditions."""
    names = {slot.name for slot in operator.signature.inputs if not slot.variadic and not slot.shape_only}
    if len(operator.signature.outputs) != 1 or operator.wants_context:
        return []
    found = []
    for value, tests in returned(function):
        if isinstance(value, ast.Call) and not _is_lowered(function, value, names):
            continue
        plain, call = _Plain(function), value
        if isinstance(value, ast.Call):
            call = ast.Call(value.func, [plain.of(argument) for argument in value.args], value.keywords)
        used = _inputs(function, call, names, operator.attributes)
        conditions = _conditions(operator, tests, used or set())
        if used and conditions is not None:
            conditions["ranks"] = plain.ranks | conditions["ranks"]
            found.append(Expression(_named(function, call), **conditions))
    return found


class _Plain:
    """Leaves out of a call what does nothing to inputs that have certain numbers of axes: `ranks`. What was read stays as it is."""

    def __init__(self, function: Callable[..., object]):
        self.function = function
        self.ranks: dict[str, int | range] = {}

    def of(self, value: ast.expr) -> ast.expr:
        """A part of a call without that."""
        match value:
            case ast.Call(args=[ast.Name(id=name) as rows]) if find_ours(self.function, value) is as_rows:
                self.ranks[name] = 2
                return rows
            case ast.Call(func=called, args=arguments, keywords=keywords):
                return ast.Call(self.of(called), [self.of(each) for each in arguments], keywords)
            case ast.Attribute(value=inner, attr=name):
                return ast.Attribute(self.of(inner), name, ast.Load())
            case ast.IfExp(orelse=otherwise) if (like := laid_as(value)) is not None:
                self.ranks[like] = _FORMLESS
                return otherwise
        return value


def _named(function: Callable[..., object], value: ast.expr) -> ast.expr:
    """The expression with PyTorch called by the names that an `Expression` knows, whatever the module of a kernel calls it."""
    called = find_function(function, value)
    if called is None:
        return value
    assert isinstance(value, ast.Call)
    if called is torch.sum and not value.keywords:
        return ast.Call(ast.Attribute(value.args[0], "sum", ast.Load()), value.args[1:], [])  # which costs less than the function
    root, *names = path_of(value.func)
    known: ast.expr = ast.Name("torch" if function.__globals__[root] is torch else "aten", ast.Load())
    for name in names:
        known = ast.Attribute(known, name, ast.Load())
    return ast.Call(known, value.args, value.keywords)


def _inputs(function: Callable[..., object], value: ast.expr, names: set[str], attributes: Collection[str]) -> set[str] | None:
    """The inputs that an expression is computed of; None where it is not one call that is lowered."""
    if isinstance(value, ast.Attribute):
        return {value.value.id} if value.attr == "mT" and isinstance(value.value, ast.Name) and value.value.id in names else None
    if not isinstance(value, ast.Call):
        return None
    receiver = [value.func.value] if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name) else []
    receiver = [node for node in receiver if node.id in names]
    used = list(_names([*receiver, *value.args], names))
    if None in used or len(set(used)) < len(used):
        return None
    keywords = [_number(keyword.value) for keyword in value.keywords]
    others = list(_names(keywords, {*names, *attributes, "out"}))
    return None if None in others else ({*used, *others} - {"out"}) & names  # type: ignore[arg-type]


def _number(value: ast.expr) -> ast.expr:
    """The input of which `value` is the number that it holds, whatever its sign; itself where it is none."""
    number = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else value
    match number:
        case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="item"), args=[]):
            return name
    return value


def _is_lowered(function: Callable[..., object], call: ast.Call, names: set[str]) -> bool:
    called = find_function(function, call)
    if called is None and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id in names:
        called = getattr(torch, call.func.attr.removesuffix("_"), None)  # a method that writes over its tensor
    return called is not None and (called.__name__ in _OTHERS or is_pointwise(called))


def _names(arguments: list[ast.expr], names: set[str]) -> Iterator[str | None]:
    """The inputs among some arguments; None for one that is neither an input, transposed or not, nor an integer."""
    for argument in arguments:
        if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr == "t" and not argument.args:
            argument = argument.func.value
        elif isinstance(argument, ast.Attribute) and argument.attr == "mT":
            argument = argument.value
        if isinstance(argument, ast.Name):
            yield argument.id if argument.id in names else None
        else:
            number = argument.operand if isinstance(argument, ast.UnaryOp) and isinstance(argument.op, ast.USub) else argument
            if not (isinstance(number, ast.Constant) and type(number.value) is int):
                yield None


def _conditions(operator: Operator, tests: Tests, used: set[str]) -> dict[str, Any] | None:
    """The conditions of an `Expression`, such that all tests have their outcomes; None where they ask for something else."""
    ranks: dict[str, int] = {}
    when: dict[str, object] = {}
    found: dict[str, Any] = {"ranks": ranks, "when": when}
    for test, outcome in tests:
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and outcome else [test]
        for part in parts:
            part, holds = (part.operand, not outcome) if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else (part, outcome)
            match part:
                case ast.Name(id=name) if name in operator.attributes:
                    when[name] = holds
                case ast.Attribute(value=ast.Name(), attr="is_cpu") if holds:
                    found["at"] = "cpu"
                case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                    if holds == (name in used):
                        return None
                case ast.Compare(
                    left=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="dim"), args=[]),
                    ops=[ast.Eq()],
                    comparators=[ast.Constant(value=int(rank))],
                ) if holds:
                    ranks[name] = rank
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=1)]) if holds and (name := _dense(left)):
                    found["dense"] = name
                case _:
                    return None
    return found


def _dense(value: ast.expr) -> str | None:
    """The input of whose last axis `value` is the stride."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="stride"), args=[last]) if ast.unparse(last) == "-1":
            return name
    return None

"""The lowering of a kernel, or of a variant of it, for some ops: one call of PyTorch, which a plan writes in the line of the op.

    def linear(x, w, bias=None):                                        two expressions, each with where it holds:
        if x.dim() == 2:
            return torch.mm(x, w) if bias is None else ...              torch.mm(x, w)           x has 2 axes, no bias
        ...                                                             torch.addmm(bias, x, w)  x has 2 axes, a bias

Lowered are functions that go element by element, and products of matrices: of inputs, each once, and integers. A transposed input counts
as one.
"""

import ast
from collections.abc import Callable, Iterator

import torch

from oarlock.backend.torch.derivation import Tests, find_function, is_pointwise, returned
from oarlock.backend.torch.expression import Expression
from oarlock.registry.declaration import Operator

__all__ = ["derive_expressions"]

_PRODUCTS = {"mm", "addmm"}


def derive_expressions(operator: Operator, function: Callable[..., object]) -> list[Expression]:
    """The expressions that `function`, the kernel of `operator` or a variant of it, lowers to, each on its conditions."""
    names = {slot.name for slot in operator.signature.inputs if not slot.variadic and not slot.shape_only}
    if len(operator.signature.outputs) != 1 or operator.wants_context:
        return []
    found = []
    for value, tests in returned(function):
        used = _inputs(function, value, names)
        conditions = _conditions(operator, tests, used or set())
        if used and conditions is not None:
            ranks, when = conditions
            found.append(Expression(ast.unparse(_named(function, value)), ranks=ranks, when=when))
    return found


def _named(function: Callable[..., object], value: ast.expr) -> ast.expr:
    """The expression with PyTorch called by the names that an `Expression` knows, whatever the module of a kernel calls it."""
    called = find_function(function, value)
    if called is None:
        return value
    assert isinstance(value, ast.Call)
    path = ast.unparse(value.func)
    root = path.partition(".")[0]
    known = "torch" if function.__globals__[root] is torch else "aten"
    return ast.Call(ast.parse(known + path.removeprefix(root), mode="eval").body, value.args, value.keywords)


def _inputs(function: Callable[..., object], value: ast.expr, names: set[str]) -> set[str] | None:
    """The inputs that an expression is computed of; None where it is not one call that is lowered."""
    if isinstance(value, ast.Attribute):
        return {value.value.id} if value.attr == "mT" and isinstance(value.value, ast.Name) and value.value.id in names else None
    if not isinstance(value, ast.Call) or not _is_lowered(function, value, names):
        return None
    receiver = [value.func.value] if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name) else []
    receiver = [node for node in receiver if node.id in names]
    used = list(_names([*receiver, *value.args], names))
    if None in used or len(set(used)) < len(used):
        return None
    others = list(_names([keyword.value for keyword in value.keywords], {*names, "out"}))
    return None if None in others else {*used, *others} - {"out"}  # type: ignore[arg-type]


def _is_lowered(function: Callable[..., object], call: ast.Call, names: set[str]) -> bool:
    called = find_function(function, call)
    if called is None and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id in names:
        called = getattr(torch, call.func.attr.removesuffix("_"), None)  # a method that writes over its tensor
    return called is not None and (called.__name__ in _PRODUCTS or is_pointwise(called))


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


def _conditions(operator: Operator, tests: Tests, used: set[str]) -> tuple[dict[str, int], dict[str, object]] | None:
    """The numbers of axes and the attributes for which all tests have their outcomes; None where they ask for something else."""
    ranks: dict[str, int] = {}
    when: dict[str, object] = {}
    for test, outcome in tests:
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and outcome else [test]
        for part in parts:
            match part:
                case ast.Name(id=name) if name in operator.attributes:
                    when[name] = outcome
                case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                    if outcome == (name in used):
                        return None
                case ast.Compare(
                    left=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="dim"), args=[]),
                    ops=[ast.Eq()],
                    comparators=[ast.Constant(value=int(rank))],
                ) if outcome:
                    ranks[name] = rank
                case _:
                    return None
    return ranks, when

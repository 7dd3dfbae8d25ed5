"""Variants of a kernel that follow from what it returns: a call of PyTorch that also writes into a tensor, or over an argument.

    def tanh_dx(y, dy):                                         the kernel
        return aten.tanh_backward.default(dy, y)

    def tanh_dx_out(y, dy, *, out):                             derived: PyTorch has an overload that writes
        return aten.tanh_backward.grad_input(dy, y, grad_input=out)

    def tanh_dx_in_place(y, dy):                                derived: the function goes element by element
        return aten.tanh_backward.grad_input(dy, y, grad_input=dy)

The source of the kernel is read, and what it returns is rewritten; everything before that stays. A kernel whose source cannot be read,
or that returns something else, has no variants of this kind. The tests hold each variant to the bits of its kernel.
"""

import ast
import linecache
import textwrap
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from oarlock.backend.torch.private import overloads, takes_out
from oarlock.op.memory_format import lies_as_made
from oarlock.registry.declaration import Operator

__all__ = ["Tests", "derive_in_place", "derive_out", "find_function", "is_pointwise", "only_call", "returned"]

_COMMUTE = {"add", "mul"}
_COPIES = {"contiguous", "to"}
_VIEWS = {"expand", "narrow", "permute", "reshape"}
_ARITHMETIC = {"add", "sub", "mul", "div"}  # of two numbers, which may be in any order in memory
_GUARD = "lies_as_made"


# What a kernel returns

Tests = tuple[tuple[ast.expr, bool], ...]


class Returned(NamedTuple):
    """An expression that a kernel returns, and the tests that hold where it does: each with its outcome."""

    value: ast.expr
    tests: Tests


_definitions: WeakKeyDictionary[FunctionType, ast.FunctionDef | None] = WeakKeyDictionary()  # also of what was derived


def _definition(kernel: Callable[..., object]) -> ast.FunctionDef | None:
    """The definition of a function at the top of a module; None of what else there is, and of what cannot be read."""
    if not isinstance(kernel, FunctionType) or kernel.__closure__:
        return None
    if kernel not in _definitions:
        _definitions[kernel] = _read(kernel)
    return _definitions[kernel]


def _read(kernel: FunctionType) -> ast.FunctionDef | None:
    lines = linecache.getlines(kernel.__code__.co_filename, kernel.__globals__)[kernel.__code__.co_firstlineno - 1 :]
    first = next((number for number, line in enumerate(lines) if line.startswith("def ")), None)
    if first is None:
        return None
    after = (number for number, line in enumerate(lines) if number > first and line[:1] not in (" ", ")", "\n", "#", ""))
    try:
        (node,) = ast.parse(textwrap.dedent("".join(lines[first : next(after, None)]))).body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.FunctionDef) and node.name == kernel.__name__ else None


def returned(kernel: Callable[..., object]) -> list[Returned]:
    """The expressions that `kernel` returns, where it does nothing else but choose; none where it does."""
    node = _definition(kernel)
    return [] if node is None else list(_returned(node.body, ()))


def _only_chooses(kernel: Callable[..., object]) -> bool:
    """Whether a kernel gives its inputs no other values before it returns."""
    node = _definition(kernel)
    kinds = (ast.FunctionDef, ast.arguments, ast.Return, ast.If, ast.Expr)
    return node is not None and all(isinstance(each, kinds) or not isinstance(each, ast.stmt) for each in ast.walk(node))


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


def find_function(kernel: Callable[..., object], call: ast.expr) -> Callable[..., Any] | None:
    """The function of PyTorch that `call`, an expression in `kernel`, calls; None where it calls none."""
    if not isinstance(call, ast.Call):
        return None
    root, *names = ast.unparse(call.func).split(".")
    found: Any = getattr(kernel, "__globals__", {}).get(root)
    if found is not torch and found is not torch.ops.aten:
        return None
    for name in names:
        found = getattr(found, name, None)
    return found


def only_call(kernel: Callable[..., object]) -> Callable[..., Any] | None:
    """The function of PyTorch that a kernel without attributes does nothing but call, with its inputs in their order; else None."""
    node, found = _definition(kernel), returned(kernel)
    if node is None or len(found) != 1 or node.args.kwonlyargs or not _only_chooses(kernel):
        return None
    (value, _), parameters = found[0], [argument.arg for argument in node.args.args]
    plain = isinstance(value, ast.Call) and not value.keywords and [ast.unparse(argument) for argument in value.args] == parameters
    return find_function(kernel, value) if plain else None


# What PyTorch has of a function


def is_pointwise(function: Callable[..., Any]) -> bool:
    """Whether PyTorch says that a function goes element by element."""
    return any(overload.pointwise for overload in overloads(function))


def _into(function: Callable[..., Any], call: ast.Call, out: ast.expr) -> ast.Call | None:
    """The call that writes into `out`; None where PyTorch has none."""
    if function is torch.full and len(call.args) > 1:
        return ast.Call(ast.Attribute(out, "fill_", ast.Load()), [call.args[1]], [])
    for overload in overloads(function):
        if overload.written is None:
            continue
        if overload.packed:  # it is a function of `torch`, which takes it by the name `out`
            if not takes_out(function, overload.name, len(call.args), [keyword.arg or "" for keyword in call.keywords]):
                continue
            return ast.Call(call.func, call.args, [*call.keywords, ast.keyword("out", out)])
        assert isinstance(call.func, ast.Attribute)
        name = ast.Attribute(call.func.value, overload.name, ast.Load())
        return ast.Call(name, call.args, [*call.keywords, ast.keyword(overload.written, out)])
    return None


def _mentions(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _copied(value: ast.expr, inputs: Collection[str]) -> ast.expr | None:
    """The tensor, in whatever memory or dtype, of whose elements `value` is a copy or a view; None where it is computed."""
    if isinstance(value, ast.Name):
        return value if value.id in inputs else None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    if value.func.attr in _COPIES:
        return _copied(value.func.value, inputs)
    return value if value.func.attr in _VIEWS and _copied(value.func.value, inputs) is not None else None


def _over(function: Callable[..., Any], call: ast.Call, slot: str) -> ast.expr | None:
    """The call that writes over the argument `slot`, one of those whose memory it may take; None where PyTorch has none.

    None too where another argument is made of it, since that may be a view, whose elements would be read when they are gone.
    """
    others = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(_mentions(each, slot) and not isinstance(each, ast.Name) for each in others):
        return None
    positions = [number for number, argument in enumerate(call.args) if isinstance(argument, ast.Name) and argument.id == slot]
    name = function.__name__ if not any(overload.packed is False for overload in overloads(function)) else ""
    if positions[:1] == [0]:
        if name and hasattr(torch.Tensor, f"{name}_"):
            return ast.Call(ast.Attribute(call.args[0], f"{name}_", ast.Load()), call.args[1:], call.keywords)
        return _into(function, call, ast.Name(slot, ast.Load()))
    if positions == [1] and name in _ARITHMETIC and len(call.args) == 2 and not call.keywords:
        if name in _COMMUTE:
            return ast.Call(ast.Attribute(call.args[1], f"{name}_", ast.Load()), [call.args[0]], [])
        return _into(function, call, ast.Name(slot, ast.Load()))
    return None


# The variants


def _is_plain(operator: Operator) -> bool:
    """Whether an operator computes one tensor of its inputs, and of nothing else, and cannot fail by their values."""
    outputs = operator.signature.outputs
    needs_more = operator.may_fail or operator.wants_context or operator.effects
    return not needs_more and len(outputs) == 1 and not outputs[0].variadic


def derive_out(operator: Operator) -> Callable[..., object] | None:
    """The function that writes the one output into `out`, and returns it; None where PyTorch has no function for that.

    Where the operator rounds by layout, and goes element by element, it computes elsewhere and copies unless `out` lies as what the kernel
    would make.
    """
    if not _is_plain(operator):
        return None
    kernel = operator.kernel
    plain, count = only_call(kernel), len(operator.signature.inputs)
    forms = [item for item in overloads(plain) if item.packed and item.written] if plain is not None else []
    if plain is not None and operator.rounds_by != "layout" and any(takes_out(plain, item.name, count, ()) for item in forms):
        return plain
    out = ast.Name("out", ast.Load())
    direct: list[bool] = []
    inputs = {slot.name for slot in operator.signature.inputs}

    def write(value: ast.expr) -> ast.expr:
        function = find_function(kernel, value)
        call = None if function is None else _into(function, value, out)  # type: ignore[arg-type]
        source = _copied(value, inputs)
        copied = ast.Call(ast.Attribute(out, "copy_", ast.Load()), [value if source is None else source], [])
        direct.append(call is not None or source is not None)
        if call is None:
            return copied
        assert function is not None
        if operator.rounds_by != "layout" or not is_pointwise(function):
            return call
        arguments = [argument for argument in value.args if isinstance(argument, ast.Name)]  # type: ignore[attr-defined]
        alike: list[ast.expr] = [ast.Call(ast.Name(_GUARD, ast.Load()), [out, argument], []) for argument in arguments]
        return ast.IfExp(ast.BoolOp(ast.And(), alike) if len(alike) > 1 else alike[0], call, copied)

    found = _rewritten(operator, f"{operator.type}_out", write, parameter="out")
    return found if any(direct) else None


def derive_in_place(operator: Operator) -> dict[tuple[str, ...], Callable[..., object]]:
    """The functions that compute the one output in the memory of an input, by that input; none where PyTorch has none.

    It is the first argument of a function that goes element by element, or either of the two of plain arithmetic.
    """
    kernel, found = operator.kernel, {}
    if not _is_plain(operator) or operator.signature.outputs[0].dtype == "bool" or not _only_chooses(kernel):
        return {}
    calls = [(value, find_function(kernel, value)) for value, _ in returned(kernel) if isinstance(value, ast.Call)]
    if not calls or not all(function is not None and is_pointwise(function) for _, function in calls):
        return {}
    inputs = [slot.name for slot in operator.signature.inputs if not slot.variadic and not slot.shape_only and not slot.optional]
    plain = only_call(kernel)
    for slot in inputs:
        if plain is not None and inputs[0] == slot and hasattr(torch.Tensor, f"{plain.__name__}_"):
            found[(slot,)] = getattr(torch.Tensor, f"{plain.__name__}_")
            continue
        failed = []

        def write(value: ast.expr, slot: str = slot, failed: list[ast.expr] = failed) -> ast.expr:
            if isinstance(value, ast.Name) and value.id == slot:
                return value
            function = find_function(kernel, value)
            call = None if function is None else _over(function, value, slot)  # type: ignore[arg-type]
            if call is None:
                failed.append(value)
            return call or value

        function = _rewritten(operator, f"{operator.type}_in_place", write)
        if function is not None and not failed:
            found[(slot,)] = function
    return found


def _rewritten(
    operator: Operator, name: str, write: Callable[[ast.expr], ast.expr], parameter: str | None = None
) -> Callable[..., object] | None:
    """The kernel under another `name`, with what `write` makes of each expression that it returns, and one more parameter."""
    kernel = operator.kernel
    node = _definition(kernel)
    if node is None or any(_mentions(node, taken) for taken in (parameter, _GUARD) if taken is not None):
        return None
    assert isinstance(kernel, FunctionType)

    class Rewrite(ast.NodeTransformer):
        def visit_FunctionDef(self, function: ast.FunctionDef) -> ast.FunctionDef:
            """Leave a function inside the kernel as it is: what it returns is not the result."""
            return function

        def visit_Return(self, statement: ast.Return) -> ast.Return:
            return ast.Return(self.choose(statement.value))  # type: ignore[arg-type]

        def choose(self, value: ast.expr) -> ast.expr:
            if isinstance(value, ast.IfExp):
                return ast.IfExp(value.test, self.choose(value.body), self.choose(value.orelse))
            return write(value)

    (made,) = ast.parse(ast.unparse(node)).body
    assert isinstance(made, ast.FunctionDef)
    made.name, made.decorator_list, made.returns = name, [], None
    made.body = [Rewrite().visit(statement) for statement in made.body]
    for argument in (*made.args.args, *made.args.kwonlyargs):
        argument.annotation = None
    if parameter is not None:
        made.args.kwonlyargs.append(ast.arg(parameter))
        made.args.kw_defaults.append(None)
    if any(_mentions(statement, _GUARD) for statement in made.body):
        made.args.kwonlyargs.append(ast.arg(_GUARD))
        made.args.kw_defaults.append(ast.Name(_GUARD, ast.Load()))
    module = ast.fix_missing_locations(ast.Module([made], []))
    scope: dict[str, Any] = {_GUARD: lies_as_made}  # the globals are those of the kernel, whatever becomes of them
    exec(compile(module, f"<{name}>", "exec"), kernel.__globals__, scope)  # noqa: S102  # the source of a kernel
    _definitions[scope[name]] = made
    return scope[name]

"""Variants of a kernel that follow from what it returns: a call of PyTorch that also writes into a tensor, or over an argument.

    def tanh_dx(y, dy):                                         the kernel
        return aten.tanh_backward.default(dy, y)

    def tanh_dx_out(y, dy, *, out):                             derived: PyTorch has an overload that writes
        return aten.tanh_backward.grad_input(dy, y, grad_input=out)

    def tanh_dx_in_place(y, dy):                                derived: the function goes element by element
        return aten.tanh_backward.grad_input(dy, y, grad_input=dy)

The source of the kernel is read, and what it returns is rewritten; everything before that stays. A function of ours that a kernel calls
last may have a parameter `out`: then it is called with that. A kernel that updates copies of its inputs, and returns these, also updates
the inputs themselves. A kernel whose source cannot be read, or that returns something else, has no variants of this kind. The tests hold
each variant to the bits of its kernel.
"""

import ast
from collections.abc import Callable, Collection
from functools import partial
from types import FunctionType
from typing import Any

import torch

from oarlock.backend.torch.kernel_source import (
    definition,
    find_function,
    find_ours,
    names_in,
    only_call,
    only_chooses,
    returned,
)
from oarlock.backend.torch.private import overloads, takes_out
from oarlock.backend.torch.rewriting import ALONE, GUARD, LAY, calls_copies, names_copied, rewritten
from oarlock.registry.declaration import Operator
from oarlock.tensor.memory_format import channels_last, dense, in_format_of

__all__ = ["derive_in_place", "derive_out", "is_pointwise", "laid_as"]

_COMMUTE = {"add", "mul"}
_COPIES = {"contiguous", "to"}
_VIEWS = {"expand", "narrow", "permute", "reshape", "unfold"}
_ARITHMETIC = {"add", "sub", "mul", "div"}  # of two numbers, which may be in any order in memory
_BY_ROWS = {"softmax", "log_softmax"}  # a row is read before it is written over
_ONTO = {"addmm"}  # what is computed is added to the first argument
_NEVER_ALIKE = ("bool", "complex.real", "float.complex")  # dtypes that no input of the same operator has
_LAYING = {channels_last, dense, in_format_of}  # the same elements, in another order in memory


# What PyTorch has of a function


def is_pointwise(function: Callable[..., Any]) -> bool:
    """Whether PyTorch says that a function goes element by element."""
    return any(overload.pointwise for overload in overloads(function))


def _may_reuse(function: Callable[..., Any]) -> bool:
    """Whether a function may write over an argument: it has read there all that it needs."""
    return is_pointwise(function) or function.__name__ in _ONTO | _BY_ROWS


def _into(function: Callable[..., Any], call: ast.Call, out: ast.expr) -> ast.Call | None:
    """The call that writes into `out`; None where PyTorch has none."""
    if function is torch.full and len(call.args) > 1:
        return ast.Call(ast.Attribute(out, "fill_", ast.Load()), [call.args[1]], [])
    if function is torch.relu:  # which takes no `out`, unlike what it comes to
        assert isinstance(call.func, ast.Attribute)
        name = ast.Attribute(call.func.value, "clamp_min", ast.Load())
        return ast.Call(name, [*call.args, ast.Constant(0)], [ast.keyword("out", out)])
    for overload in overloads(function):
        if overload.written is None:
            continue
        if overload.packed:  # it is a function of `torch`, which takes it by the name `out`
            if not takes_out(function, overload.name, len(call.args), [keyword.arg or "" for keyword in call.keywords]):
                continue
            return ast.Call(call.func, call.args, [*call.keywords, ast.keyword("out", out)])
        if any(keyword.arg == overload.written for keyword in call.keywords):  # it says itself where to write
            return None
        assert isinstance(call.func, ast.Attribute)
        name = ast.Attribute(call.func.value, overload.name, ast.Load())
        return ast.Call(name, call.args, [*call.keywords, ast.keyword(overload.written, out)])
    return None


def _filled(call: ast.expr, inputs: Collection[str], out: ast.expr) -> ast.Call | None:
    """`out` filled with what a call fills new memory with; None for any other call."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="new_full"), args=[_, value]) if name in inputs:
            return ast.Call(ast.Attribute(out, "fill_", ast.Load()), [value], [])
    return None


def _handed(kernel: Callable[..., object], call: ast.expr, out: ast.expr) -> ast.Call | None:
    """The call of a function of ours that has a parameter `out`, with that; None for any other."""
    function = find_ours(kernel, call)
    if not isinstance(function, FunctionType):
        return None
    assert isinstance(call, ast.Call)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if "out" not in (*names, *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]):
        return None
    if "out" in names[: len(call.args)]:
        arguments = [out if name == "out" else argument for name, argument in zip(names, call.args, strict=False)]
        return ast.Call(call.func, arguments, call.keywords)
    return ast.Call(call.func, call.args, [*call.keywords, ast.keyword("out", out)])


def _unlaid(kernel: Callable[..., object], value: ast.expr) -> ast.expr:
    """The expression of the elements of `value`, or that broadcasts to them, before they are laid out in memory; itself where none is."""
    if find_ours(kernel, value) in _LAYING:
        return _unlaid(kernel, value.args[0])  # type: ignore[attr-defined]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("contiguous", "expand"):
        return _unlaid(kernel, value.func.value)
    return value


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


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
    if any(slot in _names(each) and not isinstance(each, ast.Name) for each in others):
        return None
    positions = [number for number, argument in enumerate(call.args) if isinstance(argument, ast.Name) and argument.id == slot]
    if function.__name__ in _ONTO and positions != [0]:
        return None
    if function.__name__ in _BY_ROWS:
        return _into(function, call, ast.Name(slot, ast.Load())) if positions == [0] else None
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
    """Whether an operator computes one tensor of its inputs, and of nothing else."""
    outputs = operator.signature.outputs
    return not (operator.wants_context or operator.effects) and len(outputs) == 1 and not outputs[0].variadic


def derive_out(operator: Operator) -> Callable[..., object] | None:
    """The function that writes the one output into `out`, and returns it; None where PyTorch has no function for that.

    Where the operator rounds by layout, and goes element by element, it computes elsewhere and copies unless `out` lies as what the kernel
    would make.
    """
    if not _is_plain(operator):
        return None
    kernel = operator.kernel
    plain, count = only_call(kernel), len(operator.signature.inputs)
    writing = [item for item in overloads(plain) if item.packed and item.written] if plain is not None else []
    if plain is not None and operator.sensitive_to != "layout" and any(takes_out(plain, item.name, count, ()) for item in writing):
        return plain
    out = ast.Name("out", ast.Load())
    direct: list[bool] = []
    inputs = {slot.name for slot in operator.signature.inputs}

    def write(value: ast.expr) -> ast.expr:
        function = find_function(kernel, value)
        if function is not None and is_pointwise(function):
            assert isinstance(value, ast.Call)
            value = ast.Call(value.func, [_unlaid(kernel, argument) for argument in value.args], value.keywords)
        plain = _unlaid(kernel, value)
        if function is None or operator.checks_values:  # what fails has written nothing, which a function of ours sees to
            call = _filled(value, inputs, out) or _handed(kernel, value, out)
        else:
            call = _into(function, value, out)  # type: ignore[arg-type]
        source = _copied(plain, inputs) or (plain if plain is not value else None)
        copied = ast.Call(ast.Attribute(out, "copy_", ast.Load()), [value if source is None else source], [])
        direct.append(call is not None or source is not None)
        if call is None:
            return copied
        if operator.sensitive_to != "layout" or function is None or not is_pointwise(function):
            return call
        arguments = [argument for argument in value.args if isinstance(argument, ast.Name)]  # type: ignore[attr-defined]
        alike: list[ast.expr] = [ast.Call(ast.Name(GUARD, ast.Load()), [out, argument], []) for argument in arguments]
        return ast.IfExp(ast.BoolOp(ast.And(), alike) if len(alike) > 1 else alike[0], call, copied)

    found = rewritten(operator, f"{operator.type}_out", write, parameter="out")
    return found if any(direct) else None


def derive_in_place(operator: Operator) -> dict[tuple[str, ...], Callable[..., object]]:
    """The functions that compute the outputs in the memory of inputs, by these inputs; none where PyTorch has none.

    Of one output that is the first argument of a function that goes element by element, or row by row, or that adds to it; or either
    of the two of plain arithmetic.
    """
    kernel, found = operator.kernel, _derive_update(operator)
    if (
        found
        or not _is_plain(operator)
        or operator.checks_values
        or operator.signature.outputs[0].dtype in _NEVER_ALIKE
        or not only_chooses(kernel)
    ):
        return found
    values = [value for value, _ in returned(kernel, operator.preconditions)]
    functions = [find_function(kernel, value) for value in values if isinstance(value, ast.Call)]
    if not functions or not all(function is not None and _may_reuse(function) for function in functions):
        return {}
    inputs = [slot.name for slot in operator.signature.inputs if not slot.variadic and not slot.shape_only and not slot.optional]
    plain = only_call(kernel)
    for slot in inputs:
        if plain is not None and inputs[0] == slot and hasattr(torch.Tensor, f"{plain.__name__}_"):
            found[(slot,)] = getattr(torch.Tensor, f"{plain.__name__}_")
            continue
        if any(_written_over(kernel, value, slot) is None for value in values):  # which is found out sooner than a function is written
            continue
        function = rewritten(operator, f"{operator.type}_in_place", partial(_written_over, kernel, slot=slot), in_place=True)
        if function is not None:
            found[(slot,)] = function
    return found


def _written_over(kernel: Callable[..., object], value: ast.expr, slot: str) -> ast.expr | None:
    """The expression that computes `value` in the memory of an input; None where PyTorch has none."""
    if isinstance(value, ast.Name) and value.id == slot:
        return value
    function = find_function(kernel, value)
    return None if function is None else _over_laid(kernel, function, value, slot)  # type: ignore[arg-type]


def _over_laid(kernel: Callable[..., object], function: Callable[..., Any], call: ast.Call, slot: str) -> ast.expr | None:
    """`_over`; the kernel may read what lies in `slot` in the format of another input, in which it is laid where it is alone."""
    first = call.args[0] if call.args else None
    if first is None or find_ours(kernel, first) is not in_format_of:
        return _over(function, call, slot)
    assert isinstance(first, ast.Call)
    x, like = first.args
    if not (isinstance(x, ast.Name) and x.id == slot and isinstance(like, ast.Name)):
        return None
    written = _over(function, ast.Call(call.func, [x, *call.args[1:]], call.keywords), slot)
    laid = ast.IfExp(ast.Name(ALONE, ast.Load()), ast.Call(ast.Name(LAY, ast.Load()), [x, like], []), x)
    if isinstance(written, ast.Call) and isinstance(written.func, ast.Attribute) and written.func.value is x:
        return ast.Call(ast.Attribute(laid, written.func.attr, ast.Load()), written.args, written.keywords)
    if isinstance(written, ast.Call):
        return ast.Call(written.func, [laid, *written.args[1:]], written.keywords)
    return None


def laid_as(choice: ast.IfExp) -> str | None:
    """The input like which another is laid where it is alone; None for another choice."""
    match choice:
        case ast.IfExp(test=ast.Name(id="alone"), body=ast.Call(func=ast.Name(id="lay_as"), args=[_, ast.Name(id=like)])):
            return like
    return None


def _derive_update(operator: Operator) -> dict[tuple[str, ...], Callable[..., object]]:
    """The function that updates inputs, of a kernel that updates copies of them: the first thing that it makes, and all that it returns."""
    node = definition(operator.kernel) if calls_copies(operator.kernel) else None
    last = node.body[-1] if node is not None else None
    if node is None or not isinstance(last, ast.Return) or last.value is None:
        return {}
    names = names_in(last.value)
    copied = [names_copied(operator.kernel, statement) for statement in node.body]
    if not names or [each for each in copied if each] != [names] or len(names) != len(operator.signature.outputs):
        return {}
    function = rewritten(operator, f"{operator.type}_in_place", lambda value: value, in_place=True)
    return {} if function is None else {tuple(names): function}

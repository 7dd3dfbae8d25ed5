"""Checks of actual values against declared types, before and during a run. Kernels rely on declared types and may not check them."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

import torch

from oarlock.errors import DTypeError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, evaluate, solve
from oarlock.ir.var import Var, is_among
from oarlock.registry.signature import TensorType
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import describe_value, find_dense_form, is_dense
from oarlock.tensor.dtype import to_torch
from oarlock.tensor.stacks import leaves

__all__ = ["check_found", "check_op", "infer_shape", "require_declared"]


def infer_shape(block: Block, scope: Scope) -> dict[str, TensorType]:
    """Return the type of every variable of `block` for the values in `scope`, by name, without computing anything.

    Symbols of inputs and parameters in `scope` become numbers: `float32[n, 10]` becomes `float32[32, 10]`. Symbols that are known only
    after running stay. Raises ShapeError or DTypeError if a value does not have its declared type, or if two values disagree about a
    symbol.
    """
    sizes = _bind(_known(block, scope), scope, None)
    return {
        var.name: TensorType(var.dtype, None if var.shape is None else tuple(_actual(size, sizes) for size in var.shape))
        for var in block.ordered_vars()
    }


def check_found(block: Block, ops: Sequence[Op], scope: Scope, *, at_meta: bool) -> None:
    """Check the values in `scope` that `ops` of `block` will read: inputs, persistable variables, and any others.

    Tensors without elements are allowed only if the ops run `at_meta`. Raises ShapeError or DTypeError.
    """
    found, computed = _known(block, scope), set[Var]()
    for op in ops:
        found |= dict.fromkeys(var for var in op.reads if var not in computed and _holds(scope, var))
        computed.update(op.writes)
    for var in found:
        scope.find_var(var.name).settle(var.dtype)  # type: ignore[union-attr]  # known to exist
    _bind(found, scope, None, at_meta)


def check_op(op: Op, scope: Scope) -> None:
    """Check the inputs and outputs of an op against their declared types. Raises ShapeError or DTypeError, with the user's line."""
    _bind(dict.fromkeys((*op.reads, *op.writes)), scope, op)


def _known(block: Block, scope: Scope) -> dict[Var, None]:
    """Return the inputs and persistable variables of `block` that have a value."""
    return dict.fromkeys(
        var for var in (*block.inputs, *block.vars.values()) if (is_among(var, block.inputs) or var.persistable) and _holds(scope, var)
    )


def _holds(scope: Scope, var: Var) -> bool:
    found = scope.find_var(var.name)
    return found is not None and found.is_set


def _actual(size: Size, sizes: dict[str, int]) -> Size:
    number = evaluate(size, sizes)
    return size if number is None else number


def _bind(vars: Iterable[Var], scope: Scope, op: Op | None, at_meta: bool = True) -> dict[str, int]:
    """Return the number of each symbol in the types of `vars`, from the values in `scope`. Sums and products are checked last.

    Values without elements are allowed only `at_meta`.
    """
    sizes: dict[str, int] = {}
    later: list[tuple[Var, torch.Tensor]] = []
    for var in vars:
        value = scope[var.name]
        if isinstance(value, list):
            _check_uneven(value, var, op)
            continue
        if not isinstance(value, torch.Tensor) or value.dtype != to_torch(var.dtype) or not is_dense(value, at_meta):
            _refuse(DTypeError, var, value, op)
        if var.shape is None:
            continue
        if value.ndim != len(var.shape):
            _refuse(ShapeError, var, value, op)
        for size, number in zip(var.shape, value.shape, strict=True):
            name, actual = solve(size, number) or (None, None)
            if name is not None and actual is not None and sizes.setdefault(name, actual) != actual:
                _refuse(ShapeError, var, value, op, f"{name} = {sizes[name]} elsewhere")
        later.append((var, value))
    for var, value in later:
        for size, number in zip(var.shape or (), value.shape, strict=True):
            if evaluate(size, sizes) not in (None, number):
                _refuse(ShapeError, var, value, op)
    return sizes


def _check_uneven(stack: list, var: Var, op: Op | None) -> None:
    """Check the dtype and rank of a stack whose iterations differ in size.

    Each nested list is one leading dimension; in a ragged loop, it also covers the first dimension of its items.
    """
    for item in stack:
        for tensor in leaves(item):
            if tensor.dtype != to_torch(var.dtype):
                _refuse(DTypeError, var, tensor, op)
        depth, inner = 1, item
        while isinstance(inner, list) and inner:
            depth, inner = depth + 1, inner[0]
        if isinstance(inner, torch.Tensor) and var.shape is not None and not 0 <= depth + inner.ndim - len(var.shape) <= depth:
            _refuse(ShapeError, var, inner, op)


def _refuse(error: type[ShapeError] | type[DTypeError], var: Var, value: object, op: Op | None, detail: str = "") -> NoReturn:
    held = describe_value(value) if isinstance(value, torch.Tensor) else type(value).__name__
    form = find_dense_form(value) if error is DTypeError and not op else None
    written = op is not None and is_among(var, op.writes)
    raise error(
        f'{f"{op.type}: " if op else ""}"{var.name}" is declared as {var.type_text}, but {"was computed as" if written else "is"} {held}'
        + (f" ({detail})" if detail else ""),
        location=op.location if op else var.location,
        running=f"{op.block.path}, op {op.block.ops.index(op)} of {len(op.block.ops)}" if op else None,
        given=[var.describe()],
        hint=f'convert it to a dense tensor: scope.set("{var.name}", {form})' if form else None,
        op=op.type if op else None,
    )


def require_declared(var: Var, value: object, *, at_meta: bool = False) -> torch.Tensor:
    """Return `value` if it matches the declaration of the persistable `var`, all of whose sizes are known.

    Raises ShapeError for a wrong shape or a value that is not a tensor. Raises DTypeError for a wrong dtype, or a tensor that is not dense
    or has no elements (allowed `at_meta`).
    """
    dtype, dense = to_torch(var.dtype), isinstance(value, torch.Tensor) and is_dense(value, at_meta)
    if isinstance(value, torch.Tensor) and dense and value.shape == var.shape and value.dtype is dtype:
        return value
    error = DTypeError if isinstance(value, torch.Tensor) and (not dense or value.shape == var.shape) else ShapeError
    form = None if dense else find_dense_form(value)
    turned = dense and isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[::-1] == var.shape
    raise error(
        f'"{var.name}" is {describe_value(value)} in the scope, but {var.type_text} in the program',
        location=var.location,
        given=[var.describe()],
        hint=f'convert it to a dense tensor: scope.set("{var.name}", {form})'
        if form
        else f'set "{var.name}" to a value of shape {var.shape} and dtype {var.dtype}' + (": it is transposed" if turned else ""),
    )

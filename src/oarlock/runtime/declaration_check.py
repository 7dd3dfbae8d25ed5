"""Checks of values in a scope against declarations. Kernels rely on declared types and may not check them."""

import torch

from oarlock.errors import DTypeError, ShapeError
from oarlock.ir.var import Var
from oarlock.runtime.value import describe_value, find_dense_form, is_dense
from oarlock.tensor.dtype import to_torch

__all__ = ["require_declared"]


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
        hint=f'use a dense tensor: scope.set("{var.name}", {form})'
        if form
        else f'set "{var.name}" to a value of shape {var.shape} and dtype {var.dtype}' + (": it is transposed" if turned else ""),
    )

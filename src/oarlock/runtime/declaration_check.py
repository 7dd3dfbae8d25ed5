"""Checks of the values in a scope against their declarations: kernels read and write as far as types say, and not all of them look."""

import torch

from oarlock.errors import DTypeError, ShapeError
from oarlock.ir.var import Var
from oarlock.runtime.value import describe_value, find_dense_form, is_dense
from oarlock.tensor.dtype import to_torch

__all__ = ["require_declared"]


def require_declared(var: Var, value: object, *, at_meta: bool = False) -> torch.Tensor:
    """`value`, which a scope holds for the persistable `var`, all of whose sizes are numbers.

    Raises ShapeError where it has another shape, or is no tensor, and DTypeError where it has another dtype, is not dense, or has no
    elements, which only a run `at_meta` can do without.
    """
    dtype, dense = to_torch(var.dtype), isinstance(value, torch.Tensor) and is_dense(value, at_meta)
    if isinstance(value, torch.Tensor) and dense and value.shape == var.shape and value.dtype is dtype:
        return value
    error = DTypeError if isinstance(value, torch.Tensor) and (not dense or value.shape == var.shape) else ShapeError
    form = None if dense else find_dense_form(value)
    turned = dense and isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[::-1] == var.shape
    raise error(
        f'"{var.name}" holds {describe_value(value)} in the scope, but is {var.type_text} in the program',
        location=var.location,
        given=[var.describe()],
        hint=f'dense tensors are computed with: scope.set("{var.name}", {form})'
        if form
        else f'give "{var.name}" a value whose shape is {var.shape} and whose dtype is {var.dtype}'
        + (": it is transposed" if turned else ""),
    )

"""What a scope holds, held to what the program declares: kernels read and write as far as types say, and not all of them look."""

import torch

from oarlock.errors import DTypeError, ShapeError
from oarlock.ir.variable import Var
from oarlock.op.torch_dtype import from_torch, to_torch

__all__ = ["require_declared"]


def require_declared(var: Var, value: object) -> torch.Tensor:
    """`value`, which a scope holds for the persistable `var`, all of whose sizes are numbers.

    Raises ShapeError where it has another shape, or is no tensor, and DTypeError where it has another dtype.
    """
    dtype = to_torch(var.dtype)
    if isinstance(value, torch.Tensor) and value.shape == var.shape and value.dtype is dtype:
        return value
    held = f"{from_torch(value.dtype)}{list(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
    error = DTypeError if isinstance(value, torch.Tensor) and value.shape == var.shape else ShapeError
    turned = isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[::-1] == var.shape
    raise error(
        f'"{var.name}" holds {held} in the scope, but is {var.type_text} in the program',
        location=var.location,
        given=[var.describe()],
        hint=f'give "{var.name}" a value whose shape is {var.shape} and whose dtype is {var.dtype}'
        + (": it is transposed" if turned else ""),
    )

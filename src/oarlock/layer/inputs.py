"""What a program is fed."""

import sys
from collections.abc import Sequence

import numpy
import torch

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.current import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.size import Size, is_symbol
from oarlock.ir.variable import Initializer, Var
from oarlock.layer.parameter import layer_name
from oarlock.op.torch_dtype import from_torch
from oarlock.runtime.value import to_numpy, to_tensor

__all__ = ["data", "variable"]


def data(
    name: str,
    shape: Sequence[Size] | None = None,
    dtype: DType | str = "float32",
    *,
    batch: str | None = "n",
    value: object = None,
) -> Var:
    """Declare an input: float32[n, *shape] unless told otherwise.

    `batch` is the symbol of the dimension put in front; None puts none. Inputs that share a symbol have one
    size for it in each run. With `value`, an array of rows, the input carries its own value, is fed that where
    nothing else is, and has its shape and dtype. Raises ArgumentError or ProgramError.
    """
    require_user_name(name)
    main = current_block().program.main
    if current_block() is not main:
        raise ProgramError(f'"{name}": inputs are declared in the main block, not in {current_block().path}', location=here())
    initializer = None
    if value is not None:
        tensor = to_tensor(value)
        array = to_numpy(tensor)
        inner = array.shape[1:] if batch is not None else array.shape
        if batch is not None and not array.ndim:
            raise ArgumentError(f'"{name}": one number is no minibatch', location=here(), hint="batch=None")
        initializer = Initializer("array", {"data": _little_endian(tensor), "shape": tuple(array.shape)})
        dtype = from_torch(tensor.dtype) or dtype
        shape = inner
    if shape is None:
        raise ArgumentError(
            f'"{name}" needs a shape, or a value to take it from', location=here(), hint=f'ol.layer.data("{name}", shape=[784])'
        )
    for size in (*shape, *([] if batch is None else [batch])):
        if not (isinstance(size, int) and not isinstance(size, bool) and size >= 0) and not (isinstance(size, str) and is_symbol(size)):
            raise ArgumentError(
                f'"{name}": {size!r} is not a size', location=here(), contract="a size is a number from 0, or a symbol such as 't'"
            )
    full = tuple(shape) if batch is None else (batch, *shape)
    var = main.new_var(name, DType.of(dtype), full, stop_gradient=True, initializer=initializer)
    main.inputs.append(var)
    return var


def variable(*, shape: Sequence[Size] | None = None, dtype: DType | str = "float32", name: str | None = None, value: object = None) -> Var:
    """Declare an input of just this shape, with no batch dimension put in front: T[*shape]. Otherwise as `data`."""
    return data(layer_name(current_block().program, name, "variable"), shape, dtype, batch=None, value=value)


def _little_endian(tensor: torch.Tensor) -> bytes:
    """The elements in row order, as a file holds them on every machine."""
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else numpy.empty(0, "uint8")
    return (data if sys.byteorder == "little" else data.reshape(-1, tensor.itemsize)[:, ::-1]).tobytes()

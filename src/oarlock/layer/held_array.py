"""Arrays stored in a program: initial values of parameters, and values of inputs."""

import sys
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import ArgumentError, DTypeError, LimitError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Initializer
from oarlock.runtime.value import describe_value, exact_numbers, find_dense_form, to_tensor
from oarlock.tensor.dtype import to_torch

__all__ = ["HELD_BYTES", "HeldArray", "array", "hold"]

HELD_BYTES = 16 * 2**20
"""The largest initial value, in bytes, that a program may contain: a quarter of the default size limit when reading a program."""


@dataclass(frozen=True, eq=False)
class HeldArray:
    """The rule of parameters that start as an array. Calling it with a shape and a dtype returns an initializer with the elements."""

    tensor: torch.Tensor

    def __call__(self, shape: tuple[int, ...], dtype: DType) -> Initializer:
        if tuple(self.tensor.shape) != tuple(shape):
            raise ShapeError(
                f"array: the parameter has shape {list(shape)}, but its initial value has shape {list(self.tensor.shape)}", location=here()
            )
        if self.tensor.is_complex() and not dtype.is_complex:
            raise DTypeError(f"array: a {dtype} parameter cannot hold complex numbers", location=here())
        value = self.tensor.to(to_torch(dtype))
        if value.nbytes > HELD_BYTES:
            raise LimitError(
                f"array: an initial value of {value.nbytes:,} bytes, but a program may contain at most {HELD_BYTES:,}",
                location=here(),
                hint="set the value outside the program: scope.set(name, value)",
            )
        return hold(value)


def array(values: object) -> HeldArray:
    """Initialize to the elements of an array or of nested lists, converted to the parameter's dtype and stored in the program.

    When a parameter is created, raises ShapeError if its shape differs, and LimitError above 16 MiB: use `scope.set(name, value)` instead.
    Raises DTypeError if `values` is not an array of numbers, or complex for a float parameter; ArgumentError for a tensor that is not
    dense.
    """
    tensor = to_tensor(values)
    if (form := find_dense_form(tensor)) is not None:
        raise ArgumentError(f"array: {describe_value(tensor)} cannot be stored in a file", location=here(), hint=form)
    exact = exact_numbers(values, tensor)
    return HeldArray(tensor.clone() if exact is None else exact)


def hold(tensor: torch.Tensor) -> Initializer:
    """Return the initializer that contains the elements of `tensor`."""
    return Initializer("array", {"data": _little_endian(tensor), "shape": tuple(tensor.shape)})


def _little_endian(tensor: torch.Tensor) -> bytes:
    """Return the elements in row order and little-endian, as files store them on every machine."""
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else numpy.empty(0, "uint8")
    return (data if sys.byteorder == "little" else data.reshape(-1, tensor.real.itemsize)[:, ::-1]).tobytes()

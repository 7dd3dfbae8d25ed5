"""Arrays that a program holds among its data: the first values of parameters, and what inputs carry."""

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
"""How large the first value of a parameter may be that is part of a program, a quarter of what a reader allows a whole one by default."""


@dataclass(frozen=True, eq=False)
class HeldArray:
    """The rule of parameters that start as an array: called with their shape and dtype, it gives an initializer that holds the elements."""

    tensor: torch.Tensor

    def __call__(self, shape: tuple[int, ...], dtype: DType) -> Initializer:
        if tuple(self.tensor.shape) != tuple(shape):
            raise ShapeError(
                f"array: the parameter is {list(shape)}, yet the array it is to start as {list(self.tensor.shape)}", location=here()
            )
        if self.tensor.is_complex() and not dtype.is_complex:
            raise DTypeError(f"array: the parameter is {dtype}, which does not hold complex numbers", location=here())
        value = self.tensor.to(to_torch(dtype))
        if value.nbytes > HELD_BYTES:
            raise LimitError(
                f"array: {value.nbytes:,} bytes of a first value, where {HELD_BYTES:,} may be part of a program",
                location=here(),
                hint="scope.set(name, value) gives a parameter its value beside the program",
            )
        return hold(value)


def array(values: object) -> HeldArray:
    """The elements of an array or of nested lists, converted to the dtype of the parameter. They become part of the program.

    A parameter of another shape raises ShapeError, one of more than 16 MiB LimitError: `scope.set(name, value)` gives that its value.
    Raises DTypeError for what is no array of numbers, or of complex ones for a float, ArgumentError for a tensor that is not dense.
    """
    tensor = to_tensor(values)
    if (form := find_dense_form(tensor)) is not None:
        raise ArgumentError(f"array: {describe_value(tensor)} is no value that a file holds", location=here(), hint=form)
    exact = exact_numbers(values, tensor)
    return HeldArray(tensor.clone() if exact is None else exact)


def hold(tensor: torch.Tensor) -> Initializer:
    """The initializer that holds the elements of `tensor`."""
    return Initializer("array", {"data": _little_endian(tensor), "shape": tuple(tensor.shape)})


def _little_endian(tensor: torch.Tensor) -> bytes:
    """The elements in row order, as a file holds them on every machine."""
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else numpy.empty(0, "uint8")
    return (data if sys.byteorder == "little" else data.reshape(-1, tensor.real.itemsize)[:, ::-1]).tobytes()

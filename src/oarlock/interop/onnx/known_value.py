"""Values known at import: numbers, and sizes that may be symbolic."""

from collections.abc import Callable, Sequence

import numpy
import torch

from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["MOST_ELEMENTS", "Known", "known_numbers", "known_sizes"]

MOST_ELEMENTS = 2**16
"""Larger values are not shapes, axes or bounds, and stay tensors."""


class Known:
    """A value known at import. `parameter` is the name of its initializer if the program keeps it as a parameter.

    `sizes` is an array of numbers and symbols if some elements are symbols; otherwise the value is a tensor, read on first use.
    """

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        read: Callable[[], torch.Tensor] | None = None,
        *,
        sizes: numpy.ndarray | None = None,
        parameter: str | None = None,
    ):
        self.dtype = dtype
        self.shape = shape
        self.sizes = sizes
        self.parameter = parameter
        self._read = read
        self._tensor: torch.Tensor | None = None

    @classmethod
    def of(cls, numbers: float | Sequence[float], dtype: DType) -> "Known":
        """Create a value from one number, or a vector of numbers."""
        return known_numbers(torch.tensor(numbers, dtype=to_torch(dtype)))

    @property
    def tensor(self) -> torch.Tensor:
        """Return the elements. Only valid if none of them is a symbol."""
        if self._tensor is None:
            assert self._read is not None, "symbolic sizes have no tensor"
            self._tensor, self._read = self._read(), None
        return self._tensor

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return int(numpy.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def array(self) -> numpy.ndarray:
        """Return the elements as an object array of Python numbers or symbols. Raises ValueError if there are too many for a setting."""
        if self.sizes is not None:
            return self.sizes
        if self.count > MOST_ELEMENTS:
            raise ValueError(f"{self.count:,} elements, more than the {MOST_ELEMENTS:,} of a setting")
        return _objects(self.tensor.tolist(), self.shape)

    def items(self) -> list:
        """Return the elements as a flat list of numbers or symbols."""
        return list(self.array.reshape(-1))

    def item(self):
        """Return the only element. Raises ValueError if there are more."""
        (found,) = self.items()
        return found


def known_numbers(tensor: torch.Tensor) -> Known:
    """Return a tensor as a known value."""
    dtype = from_torch(tensor.dtype)
    assert dtype is not None, "kernels only return known dtypes"
    return Known(dtype, tuple(tensor.shape), lambda: tensor)


def known_sizes(array: numpy.ndarray | Sequence[Size], dtype: DType = DType.INT64) -> Known:
    """Return numbers and symbols as a known value."""
    objects = array if isinstance(array, numpy.ndarray) else _objects(list(array), (len(array),))
    if any(isinstance(item, str) for item in objects.reshape(-1)):
        return Known(dtype, objects.shape, sizes=objects)
    numbers = torch.tensor(objects.reshape(-1).tolist(), dtype=to_torch(dtype)).reshape(objects.shape)
    return known_numbers(numbers)


def _objects(nested: object, shape: tuple[int, ...]) -> numpy.ndarray:
    array = numpy.empty(shape, dtype=object)
    if array.size:
        array[...] = numpy.array(nested, dtype=object).reshape(shape)
    return array

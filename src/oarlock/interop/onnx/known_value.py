"""Values that are known when a program is written: numbers, and sizes, which may be symbols."""

from collections.abc import Callable, Sequence

import numpy
import torch

from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["MOST_ELEMENTS", "Known", "known_numbers", "known_sizes"]

MOST_ELEMENTS = 2**16
"""More are no shapes, axes or bounds, and stay tensors."""


class Known:
    """A value that is known. `parameter` is the name of the initializer that it is, where a program keeps it as a parameter.

    `sizes` is an array of numbers and symbols where some of it is symbols; else there is a tensor, read when it is asked for.
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
        """Numbers, one or several in a row."""
        return known_numbers(torch.tensor(numbers, dtype=to_torch(dtype)))

    @property
    def tensor(self) -> torch.Tensor:
        """The elements. Only where no size among them is a symbol."""
        if self._tensor is None:
            assert self._read is not None, "sizes are no tensor"
            self._tensor, self._read = self._read(), None
        return self._tensor

    @property
    def count(self) -> int:
        """How many elements there are."""
        return int(numpy.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def array(self) -> numpy.ndarray:
        """The elements as Python's numbers, or symbols, in an array of objects. Raises ValueError where they are too many for settings."""
        if self.sizes is not None:
            return self.sizes
        if self.count > MOST_ELEMENTS:
            raise ValueError(f"{self.count:,} elements, where settings have {MOST_ELEMENTS:,} at most")
        return _objects(self.tensor.tolist(), self.shape)

    def items(self) -> list:
        """The elements in a row: numbers, or symbols."""
        return list(self.array.reshape(-1))

    def item(self):
        """The one element. Raises ValueError where there are more."""
        (found,) = self.items()
        return found


def known_numbers(tensor: torch.Tensor) -> Known:
    """A tensor as a known value."""
    dtype = from_torch(tensor.dtype)
    assert dtype is not None, "no kernel of ours gives another dtype"
    return Known(dtype, tuple(tensor.shape), lambda: tensor)


def known_sizes(array: numpy.ndarray | Sequence[Size], dtype: DType = DType.INT64) -> Known:
    """Numbers and symbols as a known value."""
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

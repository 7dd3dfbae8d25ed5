"""DType, the closed set of dtypes. Their numbers in files are defined in `program.proto`."""

from enum import Enum

from oarlock.errors import DTypeError
from oarlock.ir.location import here
from oarlock.proto import program_pb2 as wire

__all__ = ["DType"]


class DType(Enum):
    """The dtype of a tensor; the value is its name in NumPy and PyTorch."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    def __str__(self) -> str:
        return self.value

    @property
    def is_floating(self) -> bool:
        """Whether the dtype is a floating-point type, bfloat16 and float16 included."""
        return "float" in self.value

    @property
    def is_integer(self) -> bool:
        """Whether the dtype is an integer type. Bool is not."""
        return "int" in self.value

    @property
    def is_complex(self) -> bool:
        """Whether the dtype is complex64 or complex128."""
        return "complex" in self.value

    @property
    def is_inexact(self) -> bool:
        """Whether elements are rounded, real or complex. Only these dtypes have gradients."""
        return self.is_floating or self.is_complex

    @property
    def real(self) -> "DType":
        """The dtype of the real and imaginary parts of a complex dtype; other dtypes unchanged."""
        return _PARTS.get(self, self)

    @property
    def complex(self) -> "DType | None":
        """The complex dtype whose parts have this dtype; a complex dtype unchanged, None if there is none."""
        return self if self.is_complex else _OF_PARTS.get(self)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        digits = self.value.lstrip("abcdefghijklmnopqrstuvwxyz")
        return int(digits) // 8 if digits else 1

    def holds(self, number: float) -> bool:
        """Return whether a real `number` is a valid element. Floats and complex numbers may round it, other dtypes may not."""
        if self.is_inexact:
            return True
        if self is DType.BOOL:
            return number in (0.0, 1.0)
        bits = 8 * self.itemsize
        low = 0 if self is DType.UINT8 else -(2 ** (bits - 1))
        return number == number // 1 and low <= number < low + 2**bits

    @classmethod
    def of(cls, value: "DType | str | object") -> "DType":
        """Return the dtype for a name, a NumPy or PyTorch dtype, or a `DType`.

        Raises DTypeError for an unsupported dtype.
        """
        if isinstance(value, cls):
            return value
        name = getattr(value, "name", None) or str(value).removeprefix("torch.")
        if isinstance(value, type):  # numpy.float32, float, bool
            name = {"float": "float32", "int": "int64", "complex": "complex64"}.get(value.__name__, value.__name__)
        try:
            return cls(name)
        except ValueError:
            raise DTypeError(
                f"{value!r} is not a dtype of Oarlock",
                location=here(),
                contract="one of " + ", ".join(str(dtype) for dtype in cls),
            ) from None

    @property
    def number(self) -> int:
        """The number of the dtype in a file."""
        return wire.DType.Value(self.name)

    @classmethod
    def from_number(cls, number: int) -> "DType":
        """Return the dtype with this number in a file. Raises KeyError if there is none."""
        return _BY_NUMBER[number]

    @classmethod
    def is_number(cls, number: int) -> bool:
        """Return whether a dtype has this number in a file."""
        return number in _BY_NUMBER


_PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
_OF_PARTS = {part: whole for whole, part in _PARTS.items()}
_BY_NUMBER = {dtype.number: dtype for dtype in DType}

"""Explicit conversion between dtypes; no operator converts implicitly."""

from oarlock.errors import DTypeError
from oarlock.ir.dtype import DType
from oarlock.op.complex_parts import real
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import to_torch

__all__ = ["cast"]


@operator(
    "x: any[...s] -> y: {dtype}[...s]",
    aliases=("x",),
    cases=[
        Case(x=[1.7, -1.7], dtype="int64", y=[1, -1]),
        Case(x=[0, 2], dtype="bool", y=[False, True]),
        Case(x=[1, 2], dtype="complex64", y=[1 + 0j, 2 + 0j]),
        Case(x=[1j, 0j], dtype="bool", y=[True, False]),
        GradCheck(x=(2, 3), dtype="float64"),
        GradCheck(x=(2, 3), dtype="complex128"),
        Rejects("x is complex128, but float64 cannot hold its imaginary part", x=[1j], dtype="float64"),
    ],
)
def cast(x, *, dtype: DType):
    """``x`` converted to another dtype. A float is truncated to an integer. `real` and `abs` convert complex numbers to real ones."""
    return x.to(to_torch(dtype))


@cast.check_shapes
def require_imaginary_kept(x, *, dtype):
    if x.dtype.is_complex and not dtype.is_complex and dtype is not DType.BOOL:
        raise DTypeError(f"x is {x.dtype}, but {dtype} cannot hold its imaginary part", hint="use ol.op.real(x) or ol.op.abs(x)")


@cast.gradient_program("x")
def cast_dx(x_shape, dy, *, dtype):
    """``dy`` cast back, its real part if ``x`` is real. Integers have no gradient."""
    given = real(dy) if dy.dtype.is_complex and not x_shape.dtype.is_complex else dy
    return given if x_shape.dtype is given.dtype else cast(given, dtype=x_shape.dtype)

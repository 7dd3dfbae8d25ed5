"""From one dtype to another, which happens nowhere else."""

from oarlock.ir.dtype import DType
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck
from oarlock.tensor.dtype import to_torch

__all__ = ["cast"]


@operator(
    "x: any[...s] -> y: {dtype}[...s]",
    aliases=("x",),
    cases=[
        Case(x=[1.7, -1.7], dtype="int64", y=[1, -1]),
        Case(x=[0, 2], dtype="bool", y=[False, True]),
        GradCheck(x=(2, 3), dtype="float64"),
    ],
)
def cast(x, *, dtype: DType):
    """``x`` in another dtype; a float becomes an integer by dropping its fraction."""
    return x.to(to_torch(dtype))


@cast.gradient_program("x")
def cast_dx(x_shape, dy, *, dtype):
    """Between floats the gradient is cast back; integers pass none."""
    return dy if x_shape.dtype is dy.dtype else cast(dy, dtype=x_shape.dtype)

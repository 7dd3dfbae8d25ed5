"""Constant tensors, of a given shape or of the shape of another tensor."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.registry.attributes import UnknownSizes
from oarlock.registry.signature import require_size
from oarlock.tensor.dtype import to_torch

__all__ = ["full", "full_batch_size_like", "full_like", "numel"]


@operator(
    " -> y: {dtype}",
    variable_attributes=("shape", "value"),
    cases=[
        Case(shape=(2,), value=1.5, dtype="float64", y=[1.5, 1.5]),
        Case(shape=(), value=3.0, dtype="int64", y=3),
        Rejects("n is not a number", shape=("n", 2), value=0.0),
        Rejects("a size is -1, but a size must be at least 0", shape=(-1,), value=0.0),
    ],
)
def full(*, shape: Sizes, value: float, dtype: DType = DType.FLOAT32):
    """A tensor of ``shape`` filled with ``value``."""
    return torch.full(shape, value, dtype=to_torch(dtype))  # type: ignore[arg-type]  # no symbol is left when it runs


full.infer_shape(lambda *, shape, value, dtype: require_told(shape, "full_like"))


def require_told(shape: Sizes, other: str) -> Shape:
    """Return the shape of a constant tensor. Raises ShapeError for a negative size, and for a symbol, naming the ``other`` operator."""
    symbol = next((size for size in shape if isinstance(size, str)), None)
    if symbol is not None and not isinstance(shape, UnknownSizes):
        raise ShapeError(f"{symbol} is not a number: use {other} to take the shape from a tensor")
    return tuple(require_size("a size", size) for size in shape)


@operator("like: shape[...s] -> y: {dtype}[...s]", cases=[Case(like=[[0.0, 0.0]], value=2.0, dtype="float64", y=[[2.0, 2.0]])])
def full_like(like, *, value: float, dtype: DType = DType.FLOAT32):
    """A tensor of the shape of ``like`` filled with ``value``. ``like`` is not kept alive."""
    return torch.full(like, value, dtype=to_torch(dtype))


@operator(
    "like: shape[...s] -> y: {dtype}",
    cases=[
        Case(like=[[0.0, 0.0, 0.0]], axis=1, shape=(2,), value=1.5, dtype="float64", y=[[1.5, 1.5], [1.5, 1.5], [1.5, 1.5]]),
        Case(like=[1, 2], shape=(), value=0.0, dtype="int64", y=[0, 0]),
        Rejects("n is not a number", like=[1.0], shape=("n",), value=0.0),
        Rejects("a size is -1, but a size must be at least 0", like=[1.0], shape=(-1,), value=0.0),
    ],
)
def full_batch_size_like(like, *, axis: int = 0, shape: Sizes, value: float, dtype: DType = DType.FLOAT32):
    """A tensor with a row of ``shape`` for each index along ``axis`` of ``like``, filled with ``value``. ``like`` is not kept alive."""
    return torch.full((like[axis], *shape), value, dtype=to_torch(dtype))  # type: ignore[arg-type]


@full_batch_size_like.infer_shape
def full_batch_size_like_shape(like, *, axis, shape, value, dtype):
    require_axis(like.shape, axis, "like")
    symbol = next((size for size in shape if isinstance(size, str)), None)
    if symbol is not None:
        raise ShapeError(f"{symbol} is not a number; only the first size is taken from a tensor")
    return (like.shape[axis], *(require_size("a size", size) for size in shape))


@operator(
    "like: shape[...s] -> y: {dtype}[]",
    cases=[
        Case(like=[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype="float64", y=6.0),
        Case(like=1.0, dtype="int64", y=1),
        Case(like=[], dtype="int64", y=0),
    ],
)
def numel(like, *, dtype: DType = DType.FLOAT32):
    """The number of elements of ``like``. ``like`` is not kept alive."""
    return torch.full((), like.numel(), dtype=to_torch(dtype))

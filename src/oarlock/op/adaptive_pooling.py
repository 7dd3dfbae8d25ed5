"""Adaptive pooling to a given output size along one, two or three axes; windows are as even as possible and may overlap."""

import torch

from oarlock.errors import ShapeError
from oarlock.op.pooling import take_places_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Operator, Rejects
from oarlock.tensor.images import adaptive_average_backward

__all__ = [
    "adaptive_average_pool1d",
    "adaptive_average_pool2d",
    "adaptive_average_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]


@operator(
    "x: float[n c! w!] -> y: float[n c ow]",
    linear_in=("x",),
    cases=[
        Case(x=[[[1.0, 3.0, 8.0]]], size=(2,), y=[[[2.0, 5.5]]]),
        GradCheck(x=(2, 3, 7), size=(3,)),
        GradCheck(x=(2, 3, 3), size=(5,)),
        GradCheck(x=(2, 3, 24), size=(1,)),
        Rejects("size must have one number of at least 1 for each axis, not (2, 2)", x=(1, 1, 2), size=(2, 2)),
    ],
)
def adaptive_average_pool1d(x, *, size: tuple[int]):
    """Average pooling to ``size`` along one axis; see `adaptive_average_pool2d`."""
    return torch.nn.functional.adaptive_avg_pool1d(x.contiguous(), size)  # strides would change how a mean is rounded


@operator(
    "x: float[n c! h! w!] -> y: float[n c oh ow]",
    linear_in=("x",),
    sensitive_to="layout",
    cases=[
        Case(x=[[[[1.0, 3.0, 8.0], [5.0, 1.0, 0.0]]]], size=(1, 2), y=[[[[2.5, 3.0]]]]),
        GradCheck(x=(2, 3, 5, 4), size=(2, 3)),
        GradCheck(x=(2, 2, 3, 5), size=(1, 1)),
        Rejects("size must have one number of at least 1 for each axis, not (0, 1)", x=(1, 1, 2, 2), size=(0, 1)),
        Rejects("x has size 0, but w must be at least 1", x=(1, 1, 2, 0), size=(1, 1)),
    ],
)
def adaptive_average_pool2d(x, *, size: tuple[int, int]):
    """Average pooling of each channel to ``size`` outputs: with ``s`` windows over ``h`` rows, window ``i`` covers the rows from
    ``floor(i h / s)`` to ``ceil((i + 1) h / s)``, the end excluded.
    """
    return torch.nn.functional.adaptive_avg_pool2d(x, size)  # type: ignore[arg-type]  # two numbers


@operator(
    "x: float[n c! d! h! w!] -> y: float[n c od oh ow]",
    linear_in=("x",),
    sensitive_to="layout",
    cases=[
        Case(x=[[[[[1.0, 3.0, 8.0]]]]], size=(1, 1, 2), y=[[[[[2.0, 5.5]]]]]),
        GradCheck(x=(1, 2, 3, 2, 4), size=(2, 1, 3)),
        GradCheck(x=(1, 2, 3, 2, 3), size=(1, 1, 1)),
    ],
)
def adaptive_average_pool3d(x, *, size: tuple[int, int, int]):
    """Average pooling to ``size`` along three axes; see `adaptive_average_pool2d`."""
    return torch.nn.functional.adaptive_avg_pool3d(x, size)  # type: ignore[arg-type]  # three numbers


@operator(
    "x: float[n c! w!] -> y: float[n c ow], index: int64[n c ow]",
    intermediate=("index",),
    cases=[Case(x=[[[1.0, 3.0, 8.0]]], size=(2,), y=[[[3.0, 8.0]]], index=[[[1, 2]]]), GradCheck(x=(2, 3, 7), size=(3,))],
)
def adaptive_max_pool1d(x, *, size: tuple[int]):
    """Max pooling to ``size`` along one axis; see `adaptive_max_pool2d`."""
    return torch.nn.functional.adaptive_max_pool1d(x, size, return_indices=True)


@operator(
    "x: float[n c! h! w!] -> y: float[n c oh ow], index: int64[n c oh ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[[1.0, 3.0, 8.0], [5.0, 1.0, 0.0]]]], size=(1, 2), y=[[[[5.0, 8.0]]]], index=[[[[3, 2]]]]),
        GradCheck(x=(2, 3, 5, 4), size=(2, 3)),
        Rejects("size must have one number of at least 1 for each axis, not (1,)", x=(1, 1, 2, 2), size=(1,)),
    ],
)
def adaptive_max_pool2d(x, *, size: tuple[int, int]):
    """The largest value in each window of `adaptive_average_pool2d`; ``index`` is its flat position in the channel."""
    return torch.nn.functional.adaptive_max_pool2d(x, size, return_indices=True)


@operator(
    "x: float[n c! d! h! w!] -> y: float[n c od oh ow], index: int64[n c od oh ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[[[1.0, 3.0, 8.0]]]]], size=(1, 1, 2), y=[[[[[3.0, 8.0]]]]], index=[[[[[1, 2]]]]]),
        GradCheck(x=(1, 2, 3, 2, 4), size=(2, 1, 3)),
    ],
)
def adaptive_max_pool3d(x, *, size: tuple[int, int, int]):
    """Max pooling to ``size`` along three axes; see `adaptive_max_pool2d`."""
    return torch.nn.functional.adaptive_max_pool3d(x, size, return_indices=True)


def _resized(x, *, size):
    if len(size) != len(x.shape) - 2 or min(size, default=0) < 1:
        raise ShapeError(f"size must have one number of at least 1 for each axis, not {size}")
    return (*x.shape[:2], *size)


def _declare_average(pool: Operator) -> None:
    def dx(dy, x_shape, *, size):
        return adaptive_average_backward(dy, x_shape)

    dx.__name__ = dx.__qualname__ = f"{pool.type}_dx"
    pool.infer_shape(_resized)
    pool.gradient("x", sensitive_to="place")(dx)


for _pool in (adaptive_average_pool1d, adaptive_average_pool2d, adaptive_average_pool3d):
    _declare_average(_pool)
for _pool in (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d):
    _pool.infer_shape(lambda x, *, size: (_resized(x, size=size), _resized(x, size=size)))
    _pool.gradient_programs(x=lambda index, dy, x_shape: take_places_dx(index, dy, x_shape))

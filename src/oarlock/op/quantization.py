"""Quantization to int8 with scales, for inference: q = round(x / scale), from -127 to 127."""

import torch

from oarlock.backend.torch.private import multiply_int8
from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import require_axis
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.tensor.dtype import at_least_single, least_scale, rounded
from oarlock.tensor.indexing import as_rows

__all__ = ["dequantize", "linear_int8", "quantize_rows"]


@operator(
    "x: float[*b k!] -> q: int8[*b k], scale: float[*b]",
    cases=[
        Case(x=[[127.0, -1.0, 0.4], [0.0, 0.0, 25.4]], q=[[127, -1, 0], [0, 0, 127]], scale=[1.0, 0.2]),
        Case(x=[-2.54, 1.28], q=[-127, 64], scale=0.02),
        Case(x=[[1.0, 0.25]], q=[[127, 32]], scale=[1 / 127]),
    ],
)
def quantize_rows(x):
    """Quantize each row to int8, with a scale of its own: ``scale = max(abs(x)) / 127``, ``q = round(x / scale)``.

    A scale is at least the smallest normal number, in float16 the smallest positive number. It has no gradient; it is for inference.
    """
    scale = torch.amax(torch.abs(x), -1, keepdim=True).div_(127.0).clamp_min_(least_scale(x.dtype))
    return rounded(x, scale), scale.squeeze(-1)


@operator(
    "q: int8[*b k], scale: float[*b], w: int8[k n], w_scale: float[n], bias?: float[n] -> out: float[*b n]",
    cases=[
        Case(q=[[1, 2], [-2, 0]], scale=[0.5, 2.0], w=[[3, 0], [4, -1]], w_scale=[2.0, 4.0], out=[[11.0, -4.0], [-24.0, 0.0]]),
        Case(q=[1, 2], scale=0.5, w=[[3, 0], [4, -1]], w_scale=[2.0, 4.0], bias=[0.5, 1.0], out=[11.5, -3.0]),
    ],
)
def linear_int8(q, scale, w, w_scale, bias=None):
    """A quantized linear layer, ``out = (q @ w) * scale * w_scale + bias``, whose product is exact in int32.

    ``scale`` is per row, ``w_scale`` per column (Jacob et al., 2018; Dettmers et al., 2022). The product is exact for up to 133,000 columns
    of ``q``. It has no gradient; it is for inference.
    """
    wide = at_least_single(scale)  # sums of a few thousand products overflow float16
    sums = multiply_int8(as_rows(q), w).to(wide.dtype).mul_(wide.reshape(-1, 1))
    w_scale = at_least_single(w_scale)
    out = sums.mul_(w_scale) if bias is None else torch.addcmul(at_least_single(bias), sums, w_scale)
    return out.reshape(*q.shape[:-1], w.shape[1]).to(scale.dtype)


@operator(
    "q: int8[...s], scale: float[c] -> x: float[...s]",
    cases=[
        Case(q=[[1, -2], [3, 4]], scale=[0.5, 2.0], x=[[0.5, -4.0], [1.5, 8.0]]),
        Case(q=[[1, -2], [3, 4]], scale=[0.5, 2.0], axis=0, x=[[0.5, -1.0], [6.0, 8.0]]),
        Rejects("2 scales", q=[[1, 2, 3]], scale=[1.0, 1.0]),
        Rejects("axis 2", q=[[1, 2, 3]], scale=[1.0, 1.0], axis=2),
    ],
)
def dequantize(q, scale, *, axis: int = -1):
    """The floats that quantized integers represent: ``x = q * scale``, with a scale for each index along ``axis``.

    It has no gradient; it is for inference.
    """
    shape = [1] * q.dim()
    shape[axis] = -1
    return q.to(scale.dtype).mul_(scale.reshape(shape))


@dequantize.check_shapes
def dequantize_shapes(q, scale, *, axis):
    require_axis(q.shape, axis, "q")
    size, scales = q.shape[axis], scale.shape[0]
    if size != scales and isinstance(size, int) and isinstance(scales, int):
        raise ShapeError(f"{scales} scales are given, but q has {size} along axis {axis}")

"""Normalization over batches, channels, groups and rows."""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axes_of, axis_of, axis_or_axes, constant, rank_of, reshaped, shape_of
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.interop.onnx.tensors import DTYPES
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer


def _by_channel(values: Var, x: Var) -> Var:
    """Reshape one value per channel to broadcast with `x`."""
    return reshaped(values, (shape_of(values)[0], *(1,) * (rank_of(x) - 2)))


def _inverse_root(variance: Var, epsilon: float) -> Var:
    return op.rsqrt(op.add(variance, constant(epsilon, variance)))


def _centered(x: Var, axes: tuple[int, ...]) -> tuple[Var, Var, Var]:
    """Return `x` minus its mean over axes, the mean, and the variance, the latter two with axes of size 1."""
    mean = op.mean(x, axis=axis_or_axes(axes), keepdim=True)
    centered = op.subtract(x, mean)
    return centered, mean, op.mean(op.multiply(centered, centered), axis=axis_or_axes(axes), keepdim=True)


@rule("BatchNormalization")
def batch_norm(x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0, outputs, importer: "Importer"):
    """Normalize by the given statistics.

    In training mode, use the batch's statistics and update the given ones: `momentum * old + (1 - momentum) * batch`.
    """
    if rank_of(x) < 2:
        raise Unsupported("its input has no channel axis")
    dtype = x.dtype
    statistics = [mean, variance]
    if training_mode:
        axes = (0, *range(2, rank_of(x)))
        used = [op.mean(op.cast(x, dtype=mean.dtype) if mean.dtype is not dtype else x, axis=axes)]
        _, _, spread = _centered(op.cast(x, dtype=mean.dtype) if mean.dtype is not dtype else x, axes)
        used.append(reshaped(spread, shape_of(mean)))
        share = constant(momentum, mean), constant(1 - momentum, mean)
        statistics = [
            op.add(op.multiply(old, share[0]), op.multiply(new, share[1])) for old, new in zip((mean, variance), used, strict=True)
        ]
        mean, variance = used
    deviation = op.sqrt(op.add(variance, constant(epsilon, variance)))
    factor = op.divide(op.cast(scale, dtype=variance.dtype) if scale.dtype is not variance.dtype else scale, deviation)
    rest = op.subtract(op.cast(bias, dtype=mean.dtype) if bias.dtype is not mean.dtype else bias, op.multiply(mean, factor))
    wide = x if mean.dtype is dtype else op.cast(x, dtype=mean.dtype)
    y = op.add(op.multiply(wide, _by_channel(factor, x)), _by_channel(rest, x))
    return (
        [y if y.dtype is dtype else op.cast(y, dtype=dtype), *statistics][:outputs]
        if training_mode
        else [y if y.dtype is dtype else op.cast(y, dtype=dtype)]
    )


@rule("InstanceNormalization")
def instance_norm(x, scale, bias, *, epsilon=1e-5):
    centered, _, variance = _centered(x, tuple(range(2, rank_of(x))))
    normal = op.multiply(centered, _inverse_root(variance, epsilon))
    return op.add(op.multiply(normal, _by_channel(scale, x)), _by_channel(bias, x))


@rule("GroupNormalization")
def group_norm(x, scale, bias, *, epsilon=1e-5, num_groups, stash_type=1, opset, importer: "Importer"):
    """Normalize groups, with a scale and a bias per channel; before opset 21, per group."""
    shape = shape_of(x)
    channels = shape[1]
    if not isinstance(channels, int) or num_groups < 1 or channels % num_groups:
        raise Unsupported(f"{channels} channels cannot be split into {num_groups} groups")
    grouped = reshaped(x, (shape[0], num_groups, channels // num_groups, *shape[2:]), importer)
    dtype = x.dtype
    wide = op.cast(grouped, dtype=DTYPES.get(stash_type, dtype)) if dtype.itemsize < 4 else grouped  # type: ignore[arg-type]
    centered, _, variance = _centered(wide, tuple(range(2, rank_of(grouped))))
    normal = op.multiply(centered, _inverse_root(variance, epsilon))
    normal = normal if normal.dtype is dtype else op.cast(normal, dtype=dtype)
    if opset < 21:
        scale, bias = (reshaped(item, (num_groups, *(1,) * (rank_of(grouped) - 2))) for item in (scale, bias))
        return reshaped(op.add(op.multiply(normal, scale), bias), shape, importer)
    normal = reshaped(normal, shape, importer)
    return op.add(op.multiply(normal, _by_channel(scale, x)), _by_channel(bias, x))


@rule("LayerNormalization")
def layer_norm(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1, outputs):
    """Normalize trailing axes. Writes a single `layer_norm` for the last axis if no statistics are needed."""
    rank = rank_of(x)
    axis = axis_of(axis, rank)
    if axis == rank - 1 and outputs == 1 and shape_of(scale) == shape_of(x)[-1:] and (bias is None or shape_of(bias) == shape_of(scale)):
        return op.layer_norm(x, scale, bias, epsilon=epsilon)
    dtype = x.dtype
    wide = op.cast(x, dtype=DTYPES.get(stash_type, dtype)) if dtype.itemsize < 4 else x  # type: ignore[arg-type]
    centered, mean, variance = _centered(wide, tuple(range(axis, rank)))
    root = _inverse_root(variance, epsilon)
    normal = op.multiply(centered, root)
    normal = op.multiply(normal if normal.dtype is dtype else op.cast(normal, dtype=dtype), scale)
    return [normal if bias is None else op.add(normal, bias), mean, root][:outputs]


@rule("RMSNormalization")
def rms_norm(x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    rank = rank_of(x)
    axes = tuple(range(axis_of(axis, rank), rank))
    if len(axes) == 1 and shape_of(scale) == shape_of(x)[-1:] and x.dtype.itemsize >= 4:
        return op.rms_norm(x, scale, epsilon=epsilon)
    dtype = x.dtype
    wide = op.cast(x, dtype=DTYPES.get(stash_type, dtype)) if dtype.itemsize < 4 else x  # type: ignore[arg-type]
    root = _inverse_root(op.mean(op.multiply(wide, wide), axis=axis_or_axes(axes), keepdim=True), epsilon)
    normal = op.multiply(wide, root)
    return op.multiply(normal if normal.dtype is dtype else op.cast(normal, dtype=dtype), scale)


@rule("LpNormalization")
def lp_norm(x, *, axis=-1, p=2):
    """Divide by the norm along an axis. Rows of zeros stay zero."""
    axis = axis_of(axis, rank_of(x))
    if p not in (1, 2):
        raise Unsupported(f"p={p} is not supported")
    magnitude = op.abs(x) if p == 1 else op.multiply(x, x)
    length = op.reduce_sum(magnitude, axis=axis, keepdim=True)
    length = length if p == 1 else op.sqrt(length)
    return op.divide(x, op.where(op.equal(length, constant(0.0, x)), constant(1.0, x), length))


@rule("MeanVarianceNormalization")
def mean_variance_norm(x, *, axes=(0, 2, 3)):
    centered, _, variance = _centered(x, axes_of(axes, rank_of(x)))
    return op.divide(centered, op.add(op.sqrt(variance), constant(1e-9, x)))


@rule("LRN")
def local_response_norm(x, *, size, alpha=0.0001, beta=0.75, bias=1.0):
    """Divide by a power of the sum of squares over a window of channels."""
    shape = shape_of(x)
    if not 1 <= size <= 1024 or not isinstance(shape[1], int):
        raise Unsupported(f"a window of {size} over {shape[1]} channels is not supported")
    squares = op.multiply(x, x)
    before, after = (size - 1) // 2, size // 2
    pads = [0] * rank_of(x), [0] * rank_of(x)
    pads[0][1], pads[1][1] = before, after
    padded = op.pad(squares, before=tuple(pads[0]), after=tuple(pads[1]), mode="constant", value=0.0)
    total = op.slice(padded, axis=1, start=0, stop=shape[1], clip=False)
    for number in range(1, size):
        total = op.add(total, op.slice(padded, axis=1, start=number, stop=number + shape[1], clip=False))
    root = op.power(op.add(op.multiply(total, constant(alpha / size, x)), constant(bias, x)), constant(beta, x))
    return op.divide(x, root)

"""Layer, batch, group and RMS normalization and their gradients."""

from collections.abc import Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.reduction import count_over
from oarlock.ir.dtype import DType


@export("layer_norm")
def layer_norm(g: Graph, x: Value, scale: Value | None = None, bias: Value | None = None, *, epsilon: float) -> tuple[str, str, str]:
    """Normalize the last axis. LayerNormalization computes statistics in float32, so other dtypes are written step by step."""
    if x.dtype is DType.FLOAT32:
        weights = scale if scale is not None else g.filled(1, x.dtype, g.dim(x, -1))
        return g("LayerNormalization", x, weights, bias, outputs=3, axis=-1, epsilon=epsilon)
    mean = g.reduce("ReduceMean", x, [-1], keepdim=True)
    centred = g("Sub", x, mean)
    variance = g.reduce("ReduceMean", g("Mul", centred, centred), [-1], keepdim=True)
    rstd = g("Reciprocal", g("Sqrt", g("Add", variance, g.scalar(epsilon, x.dtype))))
    y = g("Mul", centred, rstd)
    y = y if scale is None else g("Mul", y, scale)
    return (y if bias is None else g("Add", y, bias)), mean, rstd


@export("layer_norm_scale_grad")
def layer_norm_scale_grad(g: Graph, x: Value, mean: Value, rstd: Value, dy: Value) -> str:
    each = g("Mul", dy, g("Mul", g("Sub", x, mean), rstd))
    return g.reduce("ReduceSum", each, list(range(x.rank - 1)))


@export("layer_norm_grad")
def layer_norm_grad(g: Graph, x: Value, mean: Value, rstd: Value, dy: Value, scale: Value | None = None) -> str:
    """Return ``rstd * (g - mean(g) - xhat * mean(g * xhat))`` with ``g = dy * scale`` and ``xhat = (x - mean) * rstd``."""
    arriving = dy.name if scale is None else g("Mul", dy, scale)
    xhat = g("Mul", g("Sub", x, mean), rstd)
    return _subtract_projections(g, arriving, xhat, rstd.name, [-1])


def _subtract_projections(g: Graph, arriving: str, xhat: str, rstd: str, axes: Sequence[int], share: str | None = None) -> str:
    """Subtract from the gradient its mean and its part along `xhat`, or the fraction `share` of them."""
    along, both = (g.reduce("ReduceMean", item, axes, keepdim=True) for item in (arriving, g("Mul", arriving, xhat)))
    taken = g("Add", along, g("Mul", xhat, both))
    return g("Mul", rstd, g("Sub", arriving, taken if share is None else g("Mul", taken, share)))


# Batch normalization


def _non_channel_axes(x: Value) -> list[int]:
    """Return all axes except the channel axis."""
    return [axis for axis in range(x.rank) if axis != 1]


def by_channel(g: Graph, values: Value | str, x: Value) -> str:
    """Reshape one number per channel to broadcast with x."""
    return g.unsqueeze(values, *range(1, x.rank - 1)) if x.rank > 2 else values.name if isinstance(values, Value) else values


@export("batch_norm")
def batch_norm(
    g: Graph,
    x: Value,
    running_mean: Value,
    running_variance: Value,
    scale: Value | None = None,
    bias: Value | None = None,
    *,
    momentum: float,
    epsilon: float,
) -> tuple[str, str, str, str, str, str]:
    if not g.training or any(size == 0 for size in x.sizes):
        channels = g.dim(x, 1)
        weights = scale if scale is not None else g.filled(1, x.dtype, channels)
        shift = bias if bias is not None else g.filled(0, x.dtype, channels)
        y = g("BatchNormalization", x, weights, shift, running_mean, running_variance, epsilon=epsilon)
        rstd = g("Reciprocal", g("Sqrt", g("Add", running_variance, g.scalar(epsilon, x.dtype))))
        return y, running_mean.name, rstd, running_mean.name, running_variance.name, g.scalar(False, DType.BOOL)
    mean = g.reduce("ReduceMean", x, _non_channel_axes(x), keepdim=True)
    centred = g("Sub", x, mean)
    variance = g.reduce("ReduceMean", g("Mul", centred, centred), _non_channel_axes(x))
    rstd = g("Reciprocal", g("Sqrt", g("Add", variance, g.scalar(epsilon, x.dtype))))
    y = g("Mul", centred, by_channel(g, rstd if scale is None else g("Mul", rstd, scale), x))
    y = y if bias is None else g("Add", y, by_channel(g, bias, x))
    mean = g.squeeze(mean, *_non_channel_axes(x))
    next_mean = _update_running(g, running_mean, mean, momentum)
    next_variance = _next_variance(g, x, running_variance, variance, momentum)
    return y, mean, rstd, next_mean, next_variance, g.scalar(True, DType.BOOL)


def _update_running(g: Graph, running: Value, batch: str, momentum: float) -> str:
    kept = g("Mul", running, g.scalar(1 - momentum, running.dtype))
    return g("Add", kept, g("Mul", batch, g.scalar(momentum, running.dtype)))


def _next_variance(g: Graph, x: Value, running: Value, variance: str, momentum: float) -> str:
    """Update towards the unbiased variance. It is unchanged if a channel has a single value."""
    count, one = count_over(g, x, _non_channel_axes(x)), g.scalar(1, x.dtype)
    known = g.constant_of(count)
    if known is not None and known <= 1:
        return running.name
    moved = _update_running(g, running, g("Mul", variance, g("Div", count, g("Sub", count, one))), momentum)
    return moved if known is not None else g("Where", g("Greater", count, one), moved, running)


@export("expand_by_channel")
def expand_by_channel(g: Graph, values: Value, like: Value) -> str:
    return g("Expand", by_channel(g, values, like), g.shape(like))


@export("batch_norm_grad")
def batch_norm_grad(
    g: Graph, x: Value, mean: Value, rstd: Value, uses_batch_statistics: Value, dy: Value, scale: Value | None = None
) -> str:
    arriving = dy.name if scale is None else g("Mul", dy, by_channel(g, scale, x))
    each = by_channel(g, rstd, x)
    known = g.constant_of(uses_batch_statistics)
    if known is not None and not known:
        return g("Mul", arriving, each)
    xhat = g("Mul", g("Sub", x, by_channel(g, mean, x)), each)
    share = None if known is not None else g.cast(uses_batch_statistics, x.dtype)
    return _subtract_projections(g, arriving, xhat, each, _non_channel_axes(x), share)


@export("batch_norm_scale_grad")
def batch_norm_scale_grad(g: Graph, x: Value, mean: Value, rstd: Value, uses_batch_statistics: Value, dy: Value) -> str:
    each = g("Mul", dy, g("Sub", x, by_channel(g, mean, x)))
    return g("Mul", g.reduce("ReduceSum", each, _non_channel_axes(x)), rstd)


@export("batch_norm_bias_grad")
def batch_norm_bias_grad(g: Graph, dy: Value) -> str:
    return g.reduce("ReduceSum", dy, _non_channel_axes(dy))


# Groups and root mean squares


@export("rows_by_group")
def rows_by_group(g: Graph, x: Value, *, groups: int) -> str:
    """Reshape each group to a row: [n groups k]."""
    each = g("Div", g.count(x.sizes[1:]), g.ints(groups))
    return g.reshape(x, g("Concat", g.dim(x, 0), g.ints([groups]), g.unsqueeze(each, 0), axis=0))


@export("group_norm")
def group_norm(
    g: Graph, x: Value, scale: Value | None = None, bias: Value | None = None, *, groups: int, epsilon: float
) -> tuple[str, str, str]:
    if any(size == 0 for size in x.sizes):
        nothing = g.filled(0, x.dtype, g("Concat", g.dim(x, 0), g.ints([groups, 1]), axis=0))
        return g.filled(0, x.dtype, g.shape(x)), nothing, nothing
    rows = rows_by_group(g, x, groups=groups)
    mean = g.reduce("ReduceMean", rows, [2], keepdim=True)
    centred = g("Sub", rows, mean)
    variance = g.reduce("ReduceMean", g("Mul", centred, centred), [2], keepdim=True)
    rstd = g("Reciprocal", g("Sqrt", g("Add", variance, g.scalar(epsilon, x.dtype))))
    y = g.reshape(g("Mul", centred, rstd), g.shape(x))
    y = y if scale is None else g("Mul", y, by_channel(g, scale, x))
    return (y if bias is None else g("Add", y, by_channel(g, bias, x))), mean, rstd


@export("rms_norm")
def rms_norm(g: Graph, x: Value, scale: Value | None = None, *, epsilon: float) -> tuple[str, str]:
    squares = g.reduce("ReduceMean", g("Mul", x, x), [-1], keepdim=True)
    rstd = g("Reciprocal", g("Sqrt", g("Add", squares, g.scalar(epsilon, x.dtype))))
    y = g("Mul", x, rstd)
    return (y if scale is None else g("Mul", y, scale)), rstd


@export("rms_norm_scale_grad")
def rms_norm_scale_grad(g: Graph, x: Value, rstd: Value, dy: Value) -> str:
    return g.reduce("ReduceSum", g("Mul", g("Mul", dy, x), rstd), list(range(x.rank - 1)))


@export("rms_norm_grad")
def rms_norm_grad(g: Graph, x: Value, rstd: Value, dy: Value, scale: Value | None = None) -> str:
    """Return ``rstd * (g - x * rstd**2 * mean(g * x))`` with ``g = dy * scale``."""
    arriving = dy.name if scale is None else g("Mul", dy, scale)
    along = g.reduce("ReduceMean", g("Mul", arriving, x), [-1], keepdim=True)
    return g("Mul", rstd, g("Sub", arriving, g("Mul", x, g("Mul", g("Mul", rstd, rstd), along))))

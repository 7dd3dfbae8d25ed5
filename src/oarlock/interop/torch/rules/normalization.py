"""Batch, layer, group, instance, RMS and weight normalization."""

from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, like, rank_of, refuse, reshaped, shape_of
from oarlock.interop.torch.rules.reductions import vector_norm
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir import size
from oarlock.ir.size import Size
from oarlock.ir.var import Var


@rule("aten._native_batch_norm_legit_functional.default", "aten._batch_norm_with_update_functional.default")
def batch_norm(
    input: Var,
    weight: Var | None,
    bias: Var | None,
    running_mean: Var,
    running_var: Var,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Normalize by batch statistics in training and by running statistics in inference, if the module was exported in training.

    The second and third results are only used by PyTorch's own gradients.
    """
    if not training:
        y = normalized(input, weight, bias, running_mean, running_var, eps)
        return y, None, None, running_mean, running_var
    y = op.batch_norm(input, running_mean, running_var, weight, bias, momentum=float(momentum), epsilon=float(eps))
    assert y.op is not None
    return y, None, None, *(y.op.outputs[name][0] for name in ("next_mean", "next_variance"))


@rule("aten._native_batch_norm_legit_no_training.default", "aten._batch_norm_no_update.default")
def batch_norm_in_evaluation(
    input: Var, weight: Var | None, bias: Var | None, running_mean: Var, running_var: Var, momentum: float = 0.1, eps: float = 1e-5
):
    return normalized(input, weight, bias, running_mean, running_var, eps), None, None


@rule("aten.batch_norm.default")
def batch_norm_whole(
    input: Var,
    weight: Var | None,
    bias: Var | None,
    running_mean: Var | None,
    running_var: Var | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
):
    if running_mean is None or running_var is None:
        return batch_norm_of_batch(input, weight, bias, True, momentum, eps)[0]
    refuse(training, "batch norm that updates its statistics in place is not supported")
    return normalized(input, weight, bias, running_mean, running_var, eps)


@rule("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(input: Var, weight: Var | None, bias: Var | None, training: bool, momentum: float, eps: float):
    """Normalize by the statistics of the batch, in training and in inference."""
    axes = tuple(axis for axis in range(rank_of(input)) if axis != 1)
    mean = op.mean(input, axis=axes, keepdim=True)
    variance = op.variance(input, axis=axes, keepdim=True, correction=0.0)
    rstd = op.rsqrt(op.add(variance, like(eps, variance)))
    y = affine(op.multiply(op.subtract(input, mean), rstd), weight, bias, _by_channel(input))
    return y, reshaped(mean, [shape_of(input)[1]]), reshaped(rstd, [shape_of(input)[1]])


@rule("aten.instance_norm.default")
def instance_norm(
    input: Var,
    weight: Var | None,
    bias: Var | None,
    running_mean: Var | None,
    running_var: Var | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
):
    if not use_input_stats:
        assert running_mean is not None
        assert running_var is not None
        return normalized(input, weight, bias, running_mean, running_var, eps)
    refuse(running_mean is not None, "running statistics of instance norm are not supported")
    axes = tuple(range(2, rank_of(input)))
    y = op.subtract(input, op.mean(input, axis=axes, keepdim=True))
    variance = op.variance(input, axis=axes, keepdim=True, correction=0.0)
    return affine(op.multiply(y, op.rsqrt(op.add(variance, like(eps, variance)))), weight, bias, _by_channel(input))


def normalized(x: Var, weight: Var | None, bias: Var | None, mean: Var, variance: Var, eps: float) -> Var:
    """Normalize `x` by given statistics per channel, as one factor and one shift."""
    factor = op.rsqrt(op.add(variance, like(eps, variance)))
    factor = factor if weight is None else op.multiply(factor, weight)
    shift = op.neg(op.multiply(mean, factor))
    shift = shift if bias is None else op.add(bias, shift)
    return affine(x, factor, shift, _by_channel(x))


def _by_channel(x: Var) -> list[Size]:
    return [shape_of(x)[1], *([1] * (rank_of(x) - 2))]


def affine(x: Var, weight: Var | None, bias: Var | None, shape: Sequence[Size]) -> Var:
    """Scale and shift `x` by vectors, reshaped to `shape` for broadcasting."""
    x = x if weight is None else op.multiply(x, reshaped(weight, shape))
    return x if bias is None else op.add(x, reshaped(bias, shape))


@rule("aten.layer_norm.default")
def layer_norm(
    input: Var,
    normalized_shape: Sequence[Size],
    weight: Var | None = None,
    bias: Var | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
):
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def _layer_norm(x: Var, normalized_shape: Sequence[Size], weight: Var | None, bias: Var | None, eps: float) -> Var:
    """Normalize over several trailing axes by joining them into one."""
    shape, count = shape_of(x), len(normalized_shape)
    together = size.product(normalized_shape)
    scale, shift = (None if y is None else reshaped(y, [together]) for y in (weight, bias))
    rows = reshaped(x, [*shape[: len(shape) - count], together])
    return reshaped(op.layer_norm(rows, scale, shift, epsilon=float(eps)), shape)


@rule("aten.native_layer_norm.default")
def native_layer_norm(input: Var, normalized_shape: Sequence[Size], weight: Var | None, bias: Var | None, eps: float):
    y = _layer_norm(input, normalized_shape, weight, bias, eps)
    axes = tuple(range(rank_of(input) - len(normalized_shape), rank_of(input)))
    mean = op.mean(input, axis=axes, keepdim=True)
    variance = op.variance(input, axis=axes, keepdim=True, correction=0.0)
    return y, mean, op.rsqrt(op.add(variance, like(eps, variance)))


@rule("aten.group_norm.default")
def group_norm(
    input: Var, num_groups: int, weight: Var | None = None, bias: Var | None = None, eps: float = 1e-5, cudnn_enabled: bool = True
):
    return op.group_norm(input, weight, bias, groups=num_groups, epsilon=float(eps))


@rule("aten.native_group_norm.default")
def native_group_norm(
    input: Var,
    weight: Var | None,
    bias: Var | None,
    N: Size,  # noqa: N803  the name in the schema
    C: Size,  # noqa: N803
    HxW: Size,  # noqa: N803
    group: int,
    eps: float,
):
    y = group_norm(input, group, weight, bias, eps)
    apart = reshaped(input, [N, group, size.floor_divide(size.multiply(C, HxW), group)])
    variance = op.variance(apart, axis=2, keepdim=False, correction=0.0)
    return y, op.mean(apart, axis=2), op.rsqrt(op.add(variance, like(eps, variance)))


@rule("aten.rms_norm.default", "aten._fused_rms_norm.default")
def rms_norm(input: Var, normalized_shape: Sequence[Size], weight: Var | None = None, eps: float | None = None):
    epsilon = {"float64": 2.220446049250313e-16, "float16": 0.0009765625, "bfloat16": 0.0078125}.get(
        str(input.dtype), 1.1920928955078125e-07
    )
    epsilon = epsilon if eps is None else float(eps)
    shape, count = shape_of(input), len(normalized_shape)
    together = size.product(normalized_shape)
    rows = reshaped(input, [*shape[: len(shape) - count], together])
    scale = None if weight is None else reshaped(weight, [together])
    return reshaped(op.rms_norm(rows, scale, epsilon=epsilon), shape)


@rule("aten.renorm.default")
def renorm(self: Var, p: Number, dim: int, maxnorm: Number):
    axes = [axis for axis in range(rank_of(self)) if axis != dim % rank_of(self)]
    norm = vector_norm(self, ord=p, dim=axes, keepdim=True)
    factor = op.divide(like(maxnorm, norm), op.add(norm, like(1e-7, norm)))
    return op.multiply(self, op.where(op.greater(norm, like(maxnorm, norm)), factor, like(1.0, norm)))


@rule("aten._weight_norm.default")
def weight_norm(v: Var, g: Var, dim: int = 0):
    """Combine direction and length (Salimans and Kingma, 2016): ``v g / |v|``, with one length per index of an axis, or one for all."""
    axes = list(range(rank_of(v))) if dim == -1 else [axis for axis in range(rank_of(v)) if axis != dim % rank_of(v)]
    return op.multiply(v, op.divide(g, vector_norm(v, ord=2, dim=axes, keepdim=True)))

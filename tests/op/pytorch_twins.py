"""Operators and compositions beside the function of PyTorch that each is: what both are given, in one table."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

import oarlock as ol

__all__ = ["FLOATS", "INTEGERS", "Twin", "named", "twin"]

op = ol.op


@dataclass(frozen=True)
class Twin:
    """A function of variables, the same of tensors, and inputs: shapes of random numbers, or values. `low` and `high` bound the numbers.

    `bends` are values of the first input where a gradient has two sides, or none, and PyTorch chose one.
    """

    name: str
    ours: Callable[..., ol.Var]
    theirs: Callable[..., torch.Tensor]
    inputs: tuple[object, ...] = ((3, 4),)
    low: float = -2.0
    high: float = 2.0
    bends: tuple[float, ...] = ()
    orders: int = 2
    still: int = 0
    """How many of the last inputs PyTorch has no gradient for."""


def named(names: str, **given: object) -> list[Twin]:
    """Operators of one number that PyTorch calls as we do."""
    return [Twin(name, getattr(op, name), getattr(torch, name), **given) for name in names.split()]  # type: ignore[arg-type]


def twin(name: str, theirs: Callable[..., torch.Tensor], *inputs: object, ours: str = "", orders: int = 2, still: int = 0,
          bends=(), low=-2.0, high=2.0, **attributes: object) -> Twin:  # fmt: skip
    """A function of ours with attributes, beside one of PyTorch's that has its own."""
    called = getattr(op, ours or name.partition(" ")[0])
    return Twin(name, lambda *values: called(*values, **attributes), theirs, inputs or ((3, 4),), low, high, bends, orders, still)


UNARY = [
    *named("sin cos tan atan sinh cosh asinh erf exp2 expm1 square exp"),
    *named("asin acos atanh", low=-0.9, high=0.9),
    *named("acosh", low=1.1, high=3.0),
    *named("log log2 log10 rsqrt reciprocal sqrt", low=0.2, high=3.0),
    *named("log1p", low=-0.8, high=3.0),
    *named("floor ceil round trunc sign", bends=(0.0, 0.5, 1.5, -0.5, 2.0)),
    *named("abs", bends=(0.0, -0.0)),
    Twin("stop_gradient", op.stop_gradient, torch.detach),
]

BINARY = [
    Twin("minimum", op.minimum, torch.minimum, ([[1.0, 2.0], [3.0, 0.5]], [1.0, 1.0])),
    Twin("maximum", op.maximum, torch.maximum, ([[1.0, 2.0], [3.0, 0.5]], [1.0, 1.0])),
    Twin("maximum broadcast", op.maximum, torch.maximum, ((3, 1, 4), (2, 1))),
    Twin("power", op.power, torch.pow, ((3, 4), (4,)), 0.3, 2.0),
    Twin("power at whole numbers", op.power, torch.pow, ([0.0, 0.0, -2.0, 3.0, -1.0], 2.0), orders=1),
    Twin("power to 0", op.power, torch.pow, ([0.0, 2.0, 3.0], [0.0, 0.0, 1.0]), orders=1),
    Twin("atan2", op.atan2, torch.atan2, ((3, 4), (3, 1))),
    Twin("fmod", op.fmod, torch.fmod, ((3, 4), [0.7, -1.1, 1.3, 0.4])),
    Twin("remainder", op.remainder, torch.remainder, ((3, 4), [0.7, -1.1, 1.3, 0.4])),
    Twin("where", op.where, torch.where, ([[True], [False]], (2, 3), (3,))),
    Twin("clip", op.clip, torch.clamp, ([-1.0, -0.5, 0.25, 1.0, 3.0], -1.0, 1.0), still=2),
    Twin("x ** 3", lambda x: x**3, lambda x: x**3),
    Twin("x ** -0.5", lambda x: x**-0.5, lambda x: x**-0.5, low=0.2),
    Twin("2 ** x", lambda x: 2.0**x, lambda x: 2.0**x),
]

ACTIVATIONS = [
    twin("silu", F.silu, low=-6.0, high=6.0),
    twin("mish", F.mish, low=-6.0, high=6.0),
    twin("hardswish", F.hardswish, low=-5.0, high=5.0, bends=(-3.0, 3.0, 0.0)),
    twin("hardsigmoid", F.hardsigmoid, low=-5.0, high=5.0, bends=(-3.0, 3.0), orders=1),
    twin("leaky_relu", lambda x: F.leaky_relu(x, 0.2), slope=0.2, bends=(0.0,)),
    twin("elu", lambda x: F.elu(x, 0.7), alpha=0.7, bends=(0.0,)),
    twin("selu", F.selu, bends=(0.0,)),
    twin("celu", lambda x: F.celu(x, 0.5), alpha=0.5, bends=(0.0,)),
    twin("softplus", lambda x: F.softplus(x, 2.0, 3.0), beta=2.0, threshold=3.0),
    twin("log_sigmoid", F.logsigmoid, low=-40.0, high=40.0),
    twin("hardtanh", lambda x: F.hardtanh(x, -1.0, 0.5), lower=-1.0, upper=0.5, bends=(-1.0, 0.5)),
    twin("relu6", F.relu6, low=-2.0, high=8.0, bends=(0.0, 6.0)),
    twin("softsign", F.softsign, bends=(0.0,)),
    twin("tanhshrink", F.tanhshrink),
    twin("hardshrink", lambda x: F.hardshrink(x, 0.7), bound=0.7, bends=(-0.7, 0.7, 0.0)),
    twin("softshrink", lambda x: F.softshrink(x, 0.7), bound=0.7, bends=(-0.7, 0.7, 0.0)),
    twin("threshold", lambda x: F.threshold(x, 0.25, -3.0), threshold=0.25, value=-3.0, bends=(0.25,)),
    twin("prelu", F.prelu, (2, 3, 4), (3,)),
    twin("prelu of one slope", F.prelu, [[0.0, -1.0, 2.0]], [0.25], orders=1),
    twin("glu", F.glu, (3, 4)),
    twin("glu along 0", lambda x: F.glu(x, 0), (4, 3), ours="glu", axis=0),
    twin("softmin", lambda x: F.softmin(x, 1), (2, 3, 4), axis=1),
    twin("softmax along 1", lambda x: torch.softmax(x, 1), (2, 3, 4), ours="softmax", axis=1),
    twin("log_softmax along 0", lambda x: torch.log_softmax(x, 0), (3, 4), ours="log_softmax", axis=0),
]

_TIES = [[1.0, 3.0, 3.0], [3.0, -2.0, -2.0]]
REDUCTIONS = [
    twin("reduce_sum of two", lambda x: x.sum((0, 2)), (2, 3, 4), axis=(0, -1)),
    twin("mean of two", lambda x: x.mean((-1, -2), keepdim=True), (2, 3, 4), axis=(-1, -2), keepdim=True),
    twin("amax", torch.amax, _TIES),
    twin("amin", lambda x: torch.amin(x, 1, True), _TIES, axis=1, keepdim=True),
    twin("amax of two", lambda x: torch.amax(x, (0, 2)), (2, 3, 4), axis=(0, 2)),
    twin("reduce_max", lambda x: torch.max(x, 1).values, _TIES, axis=1),
    twin("reduce_min", lambda x: torch.min(x, 1).values, _TIES, axis=1),
    twin("reduce_prod", torch.prod, [[2.0, 0.0, 1.5], [3.0, -1.0, 2.0]]),
    twin("reduce_prod along 1", lambda x: torch.prod(x, 1), [[2.0, 0.0, 1.5], [0.0, -1.0, 0.0]], axis=1),
    twin("variance", lambda x: torch.var(x, 1), axis=1),
    twin("variance of two", lambda x: torch.var(x, (0, 2), correction=0, keepdim=True), (2, 3, 4), axis=(0, 2), correction=0.0,
          keepdim=True),
    twin("standard_deviation", lambda x: torch.std(x, 1), axis=1),
    twin("standard_deviation of equal ones", lambda x: torch.std(x, 1), [[1.0, 1.0], [1.0, 2.0]], axis=1, orders=1),
    twin("logsumexp", lambda x: torch.logsumexp(x, (0, 1)), (2, 3, 4), axis=(0, 1)),
    twin("logsumexp of what is unlikely", lambda x: torch.logsumexp(x, 1), [[1.0, -1e4], [0.0, -torch.inf]], axis=1, orders=1),
    twin("cumsum", lambda x: torch.cumsum(x, 1), (2, 3, 2), axis=1),
    twin("cumprod", lambda x: torch.cumprod(x, 1), [[2.0, 0.0, 1.5, -1.0], [0.0, -1.0, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0]], axis=1),
    *(
        twin(f"vector_norm of order {order}", lambda x, order=order: torch.linalg.vector_norm(x, order, 1), (3, 4), order=order, axis=1)
        for order in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"), float("-inf"))
    ),
    *(
        twin(f"vector_norm of zeros, of order {order}", lambda x, order=order: torch.linalg.vector_norm(x, order, 1),
              [[0.0, 0.0], [0.0, 2.0]], order=order, axis=1, orders=1)
        for order in (0.5, 1.0, 2.0, 3.0, float("inf"))
    ),
    twin("normalize", F.normalize, (2, 3, 4)),
    Twin("local_response_norm", lambda x: op.local_response_norm(x, 3, alpha=0.5, beta=0.6, k=0.7),
         lambda x: F.local_response_norm(x, 3, 0.5, 0.6, 0.7), ((2, 5, 3, 2),)),
    Twin("local_response_norm of two", lambda x: op.local_response_norm(x, 2), lambda x: F.local_response_norm(x, 2), ((2, 3, 4),)),
]  # fmt: skip

_WEIGHT = [0.5, 2.0, 1.5]
_LABEL = [0, 2, -100, 1]
LOSSES = [
    *(
        each
        for reduction in ("none", "sum", "mean")
        for each in (
            twin(f"mse_loss {reduction}", lambda x, y, r=reduction: F.mse_loss(x, y, reduction=r), (3, 4), (3, 4), reduction=reduction),
            twin(f"l1_loss {reduction}", lambda x, y, r=reduction: F.l1_loss(x, y, reduction=r), [1.0, 2.0], [1.0, 1.0],
                  reduction=reduction),
            twin(f"nll_loss {reduction}", lambda x, y, w, r=reduction: F.nll_loss(x, y, w, reduction=r), (4, 3), _LABEL, _WEIGHT, still=1,
                  reduction=reduction),
            twin(f"nll_loss of images {reduction}", lambda x, y, r=reduction: F.nll_loss(x, y, ignore_index=1, reduction=r),
                  (2, 3, 2), [[0, 1], [2, 1]], ignore_index=1, reduction=reduction),
            twin(f"cross_entropy {reduction}", lambda x, y, r=reduction: F.cross_entropy(x, y, reduction=r), (4, 3), _LABEL,
                  reduction=reduction),
            twin(f"cross_entropy of images {reduction}",
                  lambda x, y, w, r=reduction: F.cross_entropy(x, y, w, reduction=r, label_smoothing=0.1),
                  (2, 3, 2), [[0, -100], [2, 1]], _WEIGHT, still=1, reduction=reduction, label_smoothing=0.1),
            twin(f"cross_entropy smoothed {reduction}", lambda x, y, r=reduction: F.cross_entropy(x, y, reduction=r, label_smoothing=0.1),
                  (4, 3), _LABEL, reduction=reduction, label_smoothing=0.1),
            twin(f"binary_cross_entropy {reduction}", lambda x, y, w, r=reduction: F.binary_cross_entropy(x, y, w, reduction=r),
                  (4, 3), [[0.0, 1.0, 0.25]] * 4, (4, 3), still=1, orders=1, low=0.1, high=0.9, reduction=reduction),
            twin(f"binary_cross_entropy_with_logits {reduction}",
                  lambda x, y, w, p, r=reduction: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p, reduction=r),
                  (4, 3), (4, 3), (3,), _WEIGHT, still=2, low=0.1, high=0.9, reduction=reduction),
            twin(f"huber_loss {reduction}", lambda x, y, r=reduction: F.huber_loss(x, y, delta=0.5, reduction=r), (3, 4), (3, 4),
                  delta=0.5, reduction=reduction),
            twin(f"smooth_l1_loss {reduction}", lambda x, y, r=reduction: F.smooth_l1_loss(x, y, beta=0.5, reduction=r), (3, 4), (3, 4),
                  beta=0.5, reduction=reduction),
            twin(f"kl_div {reduction}", lambda x, y, r=reduction: F.kl_div(x, y, reduction=r), (3, 4), (3, 4), low=0.1, high=0.9,
                  reduction=reduction),
        )
    ),
    twin("cross_entropy of probabilities", lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.2), (4, 3), (4, 3), _WEIGHT,
          still=1, orders=1, low=0.1, high=0.9, label_smoothing=0.2),
    twin("cross_entropy of one row", F.cross_entropy, (3,), 1),
    twin("huber_loss at its bend", lambda x, y: F.huber_loss(x, y, delta=0.5), [0.5, -0.5, 0.0], [0.0, 0.0, 0.0], delta=0.5, orders=1),
    twin("smooth_l1_loss without a bend", lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), (3, 4), (3, 4), beta=0.0),
    twin("binary_cross_entropy at the ends", F.binary_cross_entropy, [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.5], orders=1, still=1),
    twin("kl_div of logarithms", lambda x, y: F.kl_div(x, y, log_target=True, reduction="batchmean"), (3, 4), (3, 4), log_target=True,
          reduction="batchmean"),
    twin("kl_div of one row", lambda x, y: F.kl_div(x, y, reduction="batchmean"), (1, 4), (3, 4), low=0.1, high=0.9,
          reduction="batchmean"),
    twin("kl_div of what is not", F.kl_div, [-1.0, -2.0], [0.0, 0.5], still=1),
]  # fmt: skip

FLOATS = [*UNARY, *BINARY, *ACTIVATIONS, *REDUCTIONS, *LOSSES]
"""Twins of floats: values and gradients are compared."""

_WHOLE = [[7, 3, 0, 2], [1, 5, 4, 6]]
_OTHER = [3, 1, 2, 5]
INTEGERS = [
    twin("abs", torch.abs, _WHOLE),
    twin("sign", torch.sign, _WHOLE),
    twin("minimum", torch.minimum, _WHOLE, _OTHER),
    twin("maximum", torch.maximum, _WHOLE, _OTHER),
    twin("power", torch.pow, _WHOLE, _OTHER),
    twin("fmod", torch.fmod, _WHOLE, _OTHER),
    twin("clip", torch.clamp, _WHOLE, 2, 5),
    twin("reduce_sum", lambda x: x.sum(1, dtype=x.dtype), _WHOLE, axis=1),
    twin("reduce_prod", lambda x: x.prod(1, dtype=x.dtype), _WHOLE, axis=1),
    twin("amax", lambda x: torch.amax(x, 0), _WHOLE, axis=0),
    twin("amin", torch.amin, _WHOLE),
    twin("argmin", lambda x: torch.argmin(x, 1), _WHOLE, axis=1),
    twin("cumsum", lambda x: torch.cumsum(x, 1, dtype=x.dtype), _WHOLE, axis=1),
    twin("cumprod", lambda x: torch.cumprod(x, 1, dtype=x.dtype), _WHOLE, axis=1),
    *(
        twin(f"bitwise_{name}", getattr(torch, f"bitwise_{name}"), _WHOLE, _OTHER)
        for name in ("and", "or", "xor", "left_shift", "right_shift")
    ),
    twin("bitwise_not", torch.bitwise_not, _WHOLE),
]  # fmt: skip
"""Twins of integers of any width: values are compared."""

"""Rules of single overloads, each by a module of one operator: forward and gradient in float64 beside PyTorch's."""

import math
import zlib
from collections.abc import Callable

import pytest
import torch
from interop.torch.imports import compare
from torch.nn import functional

from oarlock.interop.torch.arguments import _WITHOUT_MEANING
from oarlock.interop.torch.rules.registry import load_rules


def _draw(name: str, *shapes, low: float = -2.0, high: float = 2.0) -> tuple[torch.Tensor, ...]:
    """Random numbers of a seed that the name of a case gives; a tensor is itself."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return tuple(
        shape if isinstance(shape, torch.Tensor) else low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    )


def _each(module, names: str, shapes, *, wrap=lambda function: function, **draw: float):
    """A case for each of the functions of a module that are named."""
    return [(name, wrap(getattr(module, name)), shapes, draw) for name in names.split()]


_attend = functional.scaled_dot_product_attention
_X = ((3, 4),)
_XY = ((3, 4), (4,))
_IMAGE = ((2, 4, 6, 5),)
_POSITIVE = {"low": 0.5, "high": 1.5}
_IDS = torch.tensor([[0, 2, 1], [3, 0, 2]])
_MASK = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, False]])
_INTEGERS = torch.tensor([[7, -7, 5], [-5, 6, -3]])
_DIVISORS = torch.tensor([2, 3, -2])

# By family: a name, a function of tensors, their shapes or themselves, and how they are drawn.
FAMILIES = {
    "arithmetic": [
        ("add", lambda x, y: x + y, _XY),
        ("add alpha", lambda x, y: torch.add(x, y, alpha=2.5), _XY),
        ("add number", lambda x: x + 2, _X),
        ("add integers and floats", lambda x, y: x + y, ((2, 3), _INTEGERS)),
        ("sub", lambda x, y: x - y, _XY),
        ("rsub", lambda x: 1.5 - x, _X),
        ("rsub alpha", lambda x, y: torch.rsub(x, y, alpha=3), _XY),
        ("mul", lambda x, y: x * y, _XY),
        ("mul bool", lambda x, y: x * y, ((3, 4), _MASK)),
        ("div", lambda x, y: x / y, _XY, _POSITIVE),
        ("div integers", lambda x, y, z: x / y * z, (_INTEGERS, _DIVISORS, (3,))),
        ("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), _XY),
        ("div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), _XY),
        ("div trunc of integers", lambda x, y, z: torch.div(x, y, rounding_mode="trunc") * z, (_INTEGERS, _DIVISORS, (3,))),
        ("remainder", lambda x, y: torch.remainder(x, y), _XY),
        ("fmod", lambda x, y: torch.fmod(x, y), _XY),
        ("pow 2", lambda x: x**2, _X),
        ("pow 3", lambda x: x**3, _X),
        ("pow -0.5", lambda x: x**-0.5, _X, _POSITIVE),
        ("pow 2.5", lambda x: x**2.5, _X, _POSITIVE),
        ("pow tensor", lambda x, y: x**y, _XY, _POSITIVE),
        ("pow of a number", lambda x: 2.0**x, _X),
        ("maximum", lambda x, y: torch.maximum(x, y), _XY),
        ("maximum at ties", lambda x, y: torch.maximum(x, y), (torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))),
        ("minimum", lambda x, y: torch.minimum(x, y), _XY),
        ("clamp", lambda x: x.clamp(-0.5, 0.7), _X),
        ("clamp min", lambda x: x.clamp(min=0.1), _X),
        ("clamp integers", lambda x, z: x.clamp(0, 4) * z, (_INTEGERS, (3,))),
        ("clamp tensors", lambda x, y, z: torch.clamp(x, y, z), ((3, 4), (4,), (4,))),
        ("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), ((3, 4), (3, 4), (4,))),
        ("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), ((3, 4), (3, 4), (4,)), _POSITIVE),
        ("lerp", lambda x, y: torch.lerp(x, y, 0.3), ((3, 4), (3, 4))),
        ("xlogy", lambda x, y: torch.xlogy(x, y), _XY, _POSITIVE),
        ("logaddexp", lambda x, y: torch.logaddexp(x, y), _XY),
        ("atan2", lambda x, y: torch.atan2(x, y), _XY),
    ],
    "functions": [
        *_each(torch, "sin cos tanh exp expm1 sigmoid erf abs neg square sinh", _X),
        *_each(torch, "log log2 log10 log1p sqrt rsqrt reciprocal tan", _X, **_POSITIVE),
        *_each(torch, "asin acos atan atanh asinh exp2 erfc", _X, low=-0.9, high=0.9),
        *_each(torch, "floor ceil round trunc sign frac", _X, wrap=lambda function: lambda x: function(x) * x),
        ("acosh", torch.acosh, _X, {"low": 1.5, "high": 3.0}),
        ("cosh", torch.cosh, _X),
        ("logit", torch.logit, _X, {"low": 0.1, "high": 0.9}),
        ("sinc", torch.sinc, _X),
        ("nan_to_num", lambda x: torch.nan_to_num(x / x.floor().clamp(min=0), nan=0.5, posinf=3.0, neginf=-3.0), _X),
        ("detach", lambda x: x.detach() * x, _X),
    ],
    "comparison and choice": [
        ("where", lambda x, y: torch.where(x > y, x * 2, y), _XY),
        ("where number", lambda x: torch.where(x > 0, x, -1.0), _X),
        ("masked_fill", lambda x, m: x.masked_fill(m, -3.0), ((3, 4), _MASK)),
        ("comparisons", lambda x, y: ((x > y) | (x < -1) & (y != 0.5) ^ (x <= y)) * x, _XY),
        ("bits", lambda x, z: ((x & 3) | (x << 1) ^ ~x) * z, (_INTEGERS, (3,))),
        ("logic", lambda x, y: torch.logical_and(x, y).logical_not().to(x.dtype) * x, ((3, 4), _MASK)),
        ("isclose", lambda x, y: torch.isclose(x, y) * x, ((3, 4), (3, 4))),
    ],
    "activations": [
        *_each(functional, "relu silu mish hardswish hardsigmoid leaky_relu elu selu celu softplus softsign logsigmoid", _X),
        *_each(functional, "hardshrink softshrink tanhshrink relu6 hardtanh gelu", _X),
        ("gelu tanh", lambda x: functional.gelu(x, approximate="tanh"), _X),
        ("softplus beta", lambda x: functional.softplus(x, beta=3, threshold=2), _X),
        ("threshold", lambda x: functional.threshold(x, 0.1, 0.7), _X),
        ("prelu", lambda x, w: functional.prelu(x, w), ((2, 3, 4), (3,))),
        ("glu", lambda x: functional.glu(x, dim=1), ((3, 4),)),
        ("softmax", lambda x: x.softmax(-1), _X),
        ("softmax of the first axis", lambda x: x.softmax(0), _X),
        ("log_softmax", lambda x: x.log_softmax(1), ((2, 3, 4),)),
        ("softmin", lambda x: functional.softmin(x, 1), _X),
    ],
    "shapes": [
        ("view", lambda x: x.view(2, -1), ((4, 3),)),
        ("flatten", lambda x: x.flatten(1), ((2, 3, 4),)),
        ("unflatten", lambda x: x.unflatten(1, (2, -1)), ((2, 6),)),
        ("squeeze", lambda x: x.squeeze(1).unsqueeze(-1), ((2, 1, 3),)),
        ("expand", lambda x: x.expand(3, -1, 4), ((2, 1),)),
        ("permute", lambda x: x.permute(2, 0, 1), ((2, 3, 4),)),
        ("transpose", lambda x: x.transpose(0, 2).contiguous(), ((2, 3, 4),)),
        ("movedim", lambda x: x.movedim(0, 2), ((2, 3, 4),)),
        ("mT", lambda x: x.mT @ x, ((2, 3, 4),)),
        ("cat", lambda x, y: torch.cat([x, y, x], dim=-1), ((2, 3), (2, 1))),
        ("cat of dtypes", lambda x, y: torch.cat([x, y]), ((2, 3), _INTEGERS)),
        ("stack", lambda x, y: torch.stack([x, y], dim=-1), ((2, 3), (2, 3))),
        ("select", lambda x: x[:, -1] + x[:, 0], ((2, 3),)),
        ("slices", lambda x: x[:, 1:-1, ::2] + x[:, -3:-1, 1::2], ((2, 4, 6),)),
        ("slice beyond", lambda x: x[-9:2, :100], ((3, 4),)),
        ("unbind", lambda x: sum(part * (n + 1) for n, part in enumerate(x.unbind(1))), ((2, 3),)),
        ("split", lambda x: [p * 2 for p in x.split(3, dim=1)], ((2, 8),)),
        ("split_with_sizes", lambda x: [p * 2 for p in x.split([1, 3, 2], dim=1)], ((2, 6),)),
        ("chunk", lambda x: [p * 2 for p in x.chunk(3, dim=-1)], ((2, 7),)),
        ("flip", lambda x: x.flip(0, 1), _X),
        ("roll", lambda x: x.roll((1, -2), (0, 1)) + x.roll(2), _X),
        ("repeat", lambda x: x.repeat(2, 1, 3), _X),
        ("repeat_interleave", lambda x: x.repeat_interleave(3, dim=1), _X),
        ("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="xy"), ((3,), (4,))),
        ("diagonal", lambda x: x.diagonal(dim1=-2, dim2=-1), ((2, 3, 3),)),
        ("unfold", lambda x: x.unfold(1, 3, 2), ((2, 7),)),
    ],
    "reductions": [
        ("sum", lambda x: x.sum(), _X),
        ("sum of axes", lambda x: x.sum((0, 2), keepdim=True), ((2, 3, 4),)),
        ("sum of bools", lambda x, m: x * m.sum(0), ((4,), _MASK)),
        ("mean", lambda x: x.mean((1, 2)), ((2, 3, 4),)),
        ("prod", lambda x: x.prod(1), _X),
        ("amax", lambda x: x.amax((0, 2)), ((2, 3, 4),)),
        ("amax at ties", lambda x: x.relu().amax(1), (torch.tensor([[-1.0, -2.0, -3.0], [1.0, 2.0, 2.0]], dtype=torch.float64),)),
        ("amin", lambda x: x.amin(1, keepdim=True), _X),
        ("max", lambda x: x.max(), _X),
        ("max along", lambda x: x.max(dim=1).values, _X),
        ("min along", lambda x: x.min(dim=0), _X),
        ("argmax", lambda x: (x * 2, x.argmax(1), x.argmin(0, keepdim=True), x.argmax()), _X),
        ("any and all", lambda x, m: x * m.any(0) + x * m.all(1, keepdim=True), ((4,), _MASK)),
        ("var", lambda x: x.var((0, 1)), ((3, 4, 2),)),
        ("var correction", lambda x: x.var(1, correction=0, keepdim=True), _X),
        ("std", lambda x: x.std(1), _X),
        ("var_mean", lambda x: torch.var_mean(x, dim=1, unbiased=False), _X),
        ("logsumexp", lambda x: x.logsumexp(1, keepdim=True), _X),
        ("norms", lambda x: [torch.linalg.vector_norm(x, p, dim=-1, keepdim=True) for p in (1, 2, 3, math.inf)], _X),
        ("normalize", lambda x: functional.normalize(x, dim=1), _X),
        ("cumsum", lambda x: x.cumsum(1), _X),
        ("cumprod", lambda x: x.cumprod(0), _X),
        ("logcumsumexp", lambda x: x.logcumsumexp(1), _X),
        ("diff", lambda x: x.diff(dim=1), _X),
        ("sort", lambda x: x.sort(dim=1, descending=True), _X),
        ("argsort", lambda x: x * x.argsort(dim=0), _X),
        ("topk", lambda x: x.topk(2, dim=0), ((4, 3),)),
        ("topk smallest", lambda x: x.topk(2, dim=1, largest=False).values, _X),
        ("median", lambda x: x.median(dim=1).values, _X),
    ],
    "products and attention": [
        ("linear", lambda x, w, b: functional.linear(x, w, b), ((2, 3, 4), (5, 4), (5,))),
        ("addmm", lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), ((3, 5), (3, 4), (4, 5))),
        ("matmul", lambda x, y: x @ y, ((2, 1, 3, 4), (5, 4, 2))),
        ("matmul of a vector", lambda x, y: (x @ y, y @ x.mT), ((2, 3, 4), (4,))),
        ("vectors", lambda x, y: (x @ y, torch.outer(x, y)), ((4,), (4,))),
        ("baddbmm", lambda x, y, z: torch.baddbmm(x, y, z), ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
        ("einsum", lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y), ((2, 2, 3, 4), (2, 2, 5, 4))),
        ("bilinear", lambda x, y, w: functional.bilinear(x, y, w), ((3, 4), (3, 5), (2, 4, 5))),
        ("attention", _attend, ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6))),
        ("attention of one head", _attend, ((2, 3, 4), (2, 5, 4), (2, 5, 6))),
        ("causal attention", lambda q, k, v: _attend(q, k, v, is_causal=True, scale=0.3), ((2, 2, 3, 4),) * 3),
        (
            "attention with a mask",
            lambda q, k, v, m: _attend(q, k, v, attn_mask=m),
            ((2, 2, 3, 4), (2, 2, 4, 4), (2, 2, 4, 4), _MASK),
        ),
        (
            "attention with a bias",
            lambda q, k, v, m: _attend(q, k, v, attn_mask=m),
            ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 3, 5)),
        ),
        (
            "grouped attention",
            lambda q, k, v: _attend(q, k, v, enable_gqa=True, is_causal=True),
            ((2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
        ),
    ],
    "normalization": [
        ("layer_norm", lambda x, w, b: functional.layer_norm(x, (3, 4), w, b), ((2, 3, 4), (3, 4), (3, 4))),
        ("group_norm", lambda x, w, b: functional.group_norm(x, 2, w, b), ((2, 4, 3, 5), (4,), (4,))),
        ("instance_norm", lambda x, w, b: functional.instance_norm(x, weight=w, bias=b), ((2, 3, 4, 5), (3,), (3,))),
        ("rms_norm", lambda x, w: functional.rms_norm(x, (4,), w), ((2, 3, 4), (4,))),
        ("local_response_norm", lambda x: functional.local_response_norm(x, 3), _IMAGE),
    ],
    "convolutions": [
        ("conv1d", lambda x, w, b: functional.conv1d(x, w, b, stride=2, padding=1), ((2, 3, 7), (4, 3, 3), (4,))),
        ("conv2d", lambda x, w, b: functional.conv2d(x, w, b, stride=(2, 1), padding=(1, 0)), ((2, 3, 6, 5), (4, 3, 3, 2), (4,))),
        ("conv2d groups", lambda x, w: functional.conv2d(x, w, padding=1, groups=2, dilation=2), ((2, 4, 6, 6), (6, 2, 2, 2))),
        ("conv2d same", lambda x, w: functional.conv2d(x, w, padding="same"), ((2, 3, 5, 5), (4, 3, 2, 3))),
        ("conv2d of one image", lambda x, w: functional.conv2d(x, w), ((3, 5, 5), (4, 3, 2, 3))),
        ("conv3d", lambda x, w: functional.conv3d(x, w, stride=2, padding=1), ((2, 2, 4, 5, 4), (3, 2, 3, 3, 3))),
        (
            "conv_transpose2d",
            lambda x, w, b: functional.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
            ((2, 3, 4, 3), (3, 4, 3, 3), (4,)),
        ),
        ("conv_transpose1d", lambda x, w: functional.conv_transpose1d(x, w, stride=2, groups=2), ((2, 4, 5), (4, 3, 3))),
    ],
    "pooling": [
        ("max_pool2d", lambda x: functional.max_pool2d(x, 3, 2, 1), _IMAGE),
        ("max_pool2d ceil", lambda x: functional.max_pool2d(x, 2, 2, ceil_mode=True), _IMAGE),
        ("max_pool2d with places", lambda x: functional.max_pool2d(x, 2, return_indices=True), _IMAGE),
        ("max_pool1d", lambda x: functional.max_pool1d(x, 3, 2), ((2, 3, 8),)),
        ("max_pool3d", lambda x: functional.max_pool3d(x, 2), ((2, 2, 4, 4, 4),)),
        ("avg_pool2d", lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False), _IMAGE),
        ("avg_pool2d ceil", lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True), _IMAGE),
        ("avg_pool1d", lambda x: functional.avg_pool1d(x, 3, 1, 1), ((2, 3, 8),)),
        ("avg_pool3d", lambda x: functional.avg_pool3d(x, 2), ((2, 2, 4, 4, 4),)),
        ("adaptive_avg_pool2d", lambda x: functional.adaptive_avg_pool2d(x, 1), _IMAGE),
        ("adaptive_avg_pool2d of several", lambda x: functional.adaptive_avg_pool2d(x, (4, 3)), _IMAGE),
        ("adaptive_avg_pool1d", lambda x: functional.adaptive_avg_pool1d(x, 3), ((2, 3, 8),)),
        ("adaptive_max_pool2d", lambda x: functional.adaptive_max_pool2d(x, (2, 3)), _IMAGE),
    ],
    "images": [
        ("nearest", lambda x: functional.interpolate(x, scale_factor=2), _IMAGE),
        ("nearest to a size", lambda x: functional.interpolate(x, size=(9, 4)), _IMAGE),
        ("bilinear resize", lambda x: functional.interpolate(x, size=(9, 4), mode="bilinear"), _IMAGE),
        ("bilinear corners", lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True), _IMAGE),
        ("bicubic", lambda x: functional.interpolate(x, size=(9, 4), mode="bicubic"), _IMAGE),
        ("bilinear antialias", lambda x: functional.interpolate(x, size=(3, 7), mode="bilinear", antialias=True), _IMAGE),
        (
            "bilinear antialias corners",
            lambda x: functional.interpolate(x, size=(2, 3), mode="bilinear", antialias=True, align_corners=True),
            _IMAGE,
        ),
        ("bilinear antialias scale", lambda x: functional.interpolate(x, scale_factor=0.45, mode="bilinear", antialias=True), _IMAGE),
        ("bicubic antialias", lambda x: functional.interpolate(x, size=(4, 2), mode="bicubic", antialias=True), _IMAGE),
        ("linear resize", lambda x: functional.interpolate(x, size=11, mode="linear"), ((2, 3, 6),)),
        ("pad", lambda x: functional.pad(x, (1, 2, 0, 1), value=0.5), _IMAGE),
        ("pad that crops", lambda x: functional.pad(x, (-1, 2)), _IMAGE),
        ("pad reflect", lambda x: functional.pad(x, (1, 2, 2, 1), mode="reflect"), _IMAGE),
        ("pad replicate", lambda x: functional.pad(x, (1, 2, 2, 1), mode="replicate"), _IMAGE),
        ("pad circular", lambda x: functional.pad(x, (1, 2, 2, 1), mode="circular"), _IMAGE),
        ("grid_sample", lambda x, g: functional.grid_sample(x, g, align_corners=False), (*_IMAGE, (2, 3, 4, 2)), {"low": -0.9}),
        ("pixel_shuffle", lambda x: functional.pixel_shuffle(x, 2), _IMAGE),
        ("pixel_unshuffle", lambda x: functional.pixel_unshuffle(x, 2), ((2, 3, 4, 6),)),
        ("channel_shuffle", lambda x: functional.channel_shuffle(x, 2), _IMAGE),
        ("unfold images", lambda x: functional.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2), _IMAGE),
    ],
    "indexing": [
        ("embedding", lambda w, i: functional.embedding(i, w), ((4, 3), _IDS)),
        ("embedding with padding", lambda w, i: functional.embedding(i, w, padding_idx=2), ((4, 3), _IDS)),
        ("index_select", lambda x: x.index_select(1, torch.tensor([2, 0, 2])), ((3, 4),)),
        ("gather", lambda x, i: x.gather(1, i), ((2, 4), _IDS)),
        ("index", lambda x, i: x[:, i], ((3, 4), _IDS)),
        ("index of two", lambda x, i: x[i, torch.tensor([1, 0, 1])], ((4, 2, 3), _IDS)),
        ("index apart", lambda x, i: x[i, :, torch.tensor([1, 0, -1])], ((4, 2, 3), _IDS)),
        ("index_put", lambda x, v, i: x.index_put((i,), v), ((4, 2), (3, 2), torch.tensor([2, 0, 1]))),
        ("index_put accumulate", lambda x, v, i: x.index_put((i,), v, accumulate=True), ((4, 2), (3, 2), torch.tensor([2, 0, 2]))),
        ("scatter", lambda x, v, i: x.scatter(1, i, v), ((2, 4), (2, 2), torch.tensor([[0, 3], [2, 1]]))),
        ("repeats", lambda x: x.repeat_interleave(torch.tensor([2, 0, 1]), dim=1, output_size=3), ((2, 3),)),
        ("scatter_add", lambda x, v, i: x.scatter_add(1, i, v), ((2, 4), (2, 3), _IDS)),
        ("slice_scatter", lambda x, v: x.slice_scatter(v, 1, 1, 3), ((2, 4), (2, 2))),
        ("masked_scatter", lambda x, m, v: x.masked_scatter(m, v), ((3, 4), _MASK, (12,))),
        ("tril and triu", lambda x: x.tril(-1) * 2 + x.triu(1), ((3, 4),)),
        ("one_hot", lambda x, i: functional.one_hot(i, 4) * x, ((4,), _IDS)),
    ],
    "creation": [
        ("arange", lambda x: x * torch.arange(4, dtype=x.dtype) + torch.arange(0, 2, 0.5), _X),
        ("like", lambda x: x * torch.ones_like(x) + torch.full_like(x, 2.0) + torch.zeros_like(x) + x.new_full((4,), 1.5), _X),
    ],
    "losses": [
        *_each(functional, "mse_loss l1_loss smooth_l1_loss huber_loss cosine_similarity", ((3, 4), (3, 4)), low=0.1, high=0.9),
        *_each(functional, "binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss", ((3, 4), (3, 4)), low=0.1, high=0.9),
        ("cosine_similarity of ranks", lambda x, y: functional.cosine_similarity(x, y, dim=-1), ((2, 3), (2, 1, 3))),
        (
            "cosine_embedding_loss",
            lambda x, y, t: functional.cosine_embedding_loss(x, y, t, margin=0.2),
            ((4, 3), (4, 3), torch.tensor([1, -1, 1, -1])),
        ),
        ("kl_div", lambda x, y: functional.kl_div(x, y, reduction="sum"), ((3, 4), (3, 4)), {"low": 0.1, "high": 0.9}),
        ("nll_loss", lambda x, w, i: functional.nll_loss(x, i, w.detach().exp(), ignore_index=2), ((2, 4, 3), (4,), _IDS)),
        ("cross_entropy", lambda x, i: functional.cross_entropy(x, i), ((3, 4), torch.tensor([0, 3, -100]))),
        (
            "cross_entropy with all",
            lambda x, w, i: functional.cross_entropy(x, i, w.detach().exp(), label_smoothing=0.1, ignore_index=1),
            ((3, 4), (4,), torch.tensor([0, 3, 1])),
        ),
        ("cross_entropy of shares", lambda x, y: functional.cross_entropy(x, y.softmax(1), label_smoothing=0.2), ((3, 4), (3, 4))),
    ],
}  # fmt: skip


class Family(torch.nn.Module):
    """Functions, each of tensors of its own, as one module: a module is exported once."""

    def __init__(self, functions: dict[str, tuple[Callable[..., object], int]]):
        super().__init__()
        self.functions = functions

    def forward(self, *given: torch.Tensor) -> dict[str, object]:
        rest, outputs = list(given), {}
        for name, (function, count) in self.functions.items():
            outputs[name.replace(" ", "_").replace("-", "minus_")] = function(*rest[:count])
            del rest[:count]
        return outputs


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_that_come_in_give_what_pytorch_gives(family):
    drawn = {name: _draw(name, *given, **(draw[0] if draw else {})) for name, _, given, *draw in FAMILIES[family]}
    assert len(drawn) == len(FAMILIES[family])
    module = Family({name: (function, len(drawn[name])) for name, function, *_ in FAMILIES[family]})
    compare(module, [tensor for tensors in drawn.values() for tensor in tensors])


def test_rules_are_called_as_the_schemas_of_their_overloads():
    faults = []
    for name, rule in load_rules().items():
        if not name.startswith("aten."):
            continue
        _, operator, overload = name.split(".")
        schema = getattr(getattr(torch.ops.aten, operator), overload)._schema
        needed = {argument.name for argument in schema.arguments if not argument.has_default_value()}
        faults += [f"{name}: {missing} is not taken" for missing in sorted(needed - {*rule.parameters, *_WITHOUT_MEANING})]
        faults += [f"{name}: {promoted} is no parameter" for promoted in rule.promote if promoted not in rule.parameters]
    assert faults == []

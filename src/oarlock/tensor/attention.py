"""Attention: by PyTorch's kernel for it, which holds no weight for each pair of places, where that takes the sizes, else by products."""

import math
from collections.abc import Sequence

import torch

from oarlock.backend.torch.private import flash_attention, flash_attention_backward
from oarlock.ir.shape_rules import differ, require_at_most
from oarlock.ir.size import format_shape

__all__ = ["attend", "attend_backward", "attend_backward_bias", "require_heads"]


def attend(query, key, value, mask=None, bias=None, *, heads: int, causal: bool, scale: float | None = None):
    """``softmax(query key' scale + bias) value`` by head, and the logarithm of what its weights were divided by, [*b heads t].

    The mask, [*b heads t s] or with sizes of 1, hides keys where it is false; a query that sees none gets zeros. Raises ValueError for
    sizes that do not fit.
    """
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v = (_split(x, heads) for x in (query, key, value))
    y, logsumexp = _forward(q, k, v, causal, _added(q, k, mask, bias, causal), scale)
    return _joined(y, query), logsumexp.reshape(*query.shape[:-2], heads, query.shape[-2])


def attend_backward(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, *, heads: int, causal: bool, scale: float | None = None
) -> list[torch.Tensor]:
    """The gradients of all three: PyTorch's kernel computes them together."""
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v, y, dy = (_split(x, heads) for x in (query, key, value, y, dy))
    logsumexp, added = logsumexp.reshape(q.shape[:-1]), _added(q, k, mask, bias, causal)
    if _is_fast(q, v, k.shape[-2], added, logsumexp):
        flag, hidden = _masking(q, k.shape[-2], causal, added)
        found = flash_attention_backward(dy, q, k, v, y, logsumexp, 0.0, flag, attn_mask=hidden, scale=scale)
    else:
        weights, dfit = _dfit(v, y, logsumexp, dy, _fit(q, k, causal, added, scale))
        dfit = dfit * _scale(q, scale)
        found = dfit @ k, dfit.mT @ q, weights.mT @ dy
    return [_joined(dx, x) for dx, x in zip(found, (query, key, value), strict=True)]


def attend_backward_bias(query, key, value, y, logsumexp, dy, mask, bias, *, heads: int, causal: bool, scale: float | None = None):
    """The gradient of the bias: a weight for every pair of places, summed to its shape."""
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v, y, dy = (_split(x, heads) for x in (query, key, value, y, dy))
    fit = _fit(q, k, causal, _added(q, k, mask, bias, causal), scale)
    _, dfit = _dfit(v, y, logsumexp.reshape(q.shape[:-1]), dy, fit)
    return dfit.sum_to_size(_by_row(bias, q).shape).reshape(bias.shape)


def require_heads(query, key, value, mask=None, bias=None, *, heads: int, causal: bool, scale: float | None = None) -> None:
    """Raises ValueError where sizes are known not to fit."""
    queries, keys = query.shape[-2], key.shape[-2]
    if causal:
        require_at_most(queries, keys, "{} queries are more than {} keys, so the first ones would see nothing", queries, keys)
    for name, columns in (("query", query.shape[-1]), ("value", value.shape[-1])):
        if heads < 1 or (isinstance(columns, int) and columns % heads):
            raise ValueError(f"{heads} heads do not divide the {columns} columns of {name}")
    for name, given in (("mask", mask), ("bias", bias)):
        wanted = (heads, queries, keys)
        if given is not None and any(size != 1 and differ(size, other) for size, other in zip(given.shape[-3:], wanted, strict=True)):
            raise ValueError(f"{name} ends with {format_shape(given.shape[-3:])}, where heads, queries and keys are {format_shape(wanted)}")


def _split(x: torch.Tensor, heads: int) -> torch.Tensor:
    *leading, rows, columns = x.shape
    x = x.reshape(math.prod(leading), rows, heads, columns // heads).transpose(1, 2)
    return x if x.stride(-1) == 1 else x.contiguous()


def _joined(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """[n heads rows columns] in the leading dimensions of `like`, the heads' columns side by side again."""
    return x.transpose(1, 2).reshape(*like.shape[:-2], x.shape[2], x.shape[1] * x.shape[3])


def _is_fast(q: torch.Tensor, v: torch.Tensor, s: int, added: torch.Tensor | None, by_query: torch.Tensor | None = None) -> bool:
    """Whether PyTorch's kernel for this takes them: it divides by sizes that are 0, and asks for as many columns of each.

    It gives NaN to a query that sees nothing, for which `by_query` is minus infinity: the largest of what is added, or what comes of it.
    And it gives no gradient to what is added.
    """
    there = flash_attention is not None and flash_attention_backward is not None
    fits = there and q.device.type == "cpu" and q.shape[-1] == v.shape[-1] and q.numel() > 0 and s > 0
    if not fits or added is None:
        return fits
    return not added.requires_grad and (added.amax(-1) if by_query is None else by_query).amin().item() > -math.inf


def _by_row(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """A mask or a bias as [n heads t s], some of these 1."""
    return x.reshape(q.shape[0], *x.shape[-3:])


def _added(q, k, mask, bias, causal: bool) -> torch.Tensor | None:
    """The bias of the score of each query and key, [n heads t s] or with sizes of 1; None where there is no mask and no bias."""
    if mask is None and bias is None:
        return None
    added = [] if mask is None else [torch.where(_by_row(mask, q), q.new_zeros(()), -math.inf)]
    added += [] if bias is None else [_by_row(bias, q)]
    hidden = _hidden(q, k.shape[-2], causal)
    added += [] if hidden is None else [hidden]
    return sum(added[1:], added[0])


def _hidden(q: torch.Tensor, s: int, causal: bool) -> torch.Tensor | None:
    """The bias that hides the keys which a query must not see; None where it sees all."""
    t = q.shape[-2]
    return torch.full((t, s), -math.inf, dtype=q.dtype, device=q.device).triu_(s - t + 1) if causal else None


def _masking(q: torch.Tensor, s: int, causal: bool, added: torch.Tensor | None) -> tuple[bool, torch.Tensor | None]:
    """How PyTorch's kernel is told what to hide: by a flag, which means the first keys, where there are as many as queries."""
    if added is not None:
        return False, added.expand(-1, -1, q.shape[-2], s)
    square = q.shape[-2] == s
    return causal and square, None if square else _hidden(q, s, causal)


def _forward(q, k, v, causal: bool, added: torch.Tensor | None, scale: float | None) -> Sequence[torch.Tensor]:
    s = k.shape[-2]
    if _is_fast(q, v, s, added):
        flag, hidden = _masking(q, s, causal, added)
        return flash_attention(q, k, v, 0.0, flag, attn_mask=hidden, scale=scale)
    fit = _fit(q, k, causal, added, scale)
    logsumexp = torch.logsumexp(fit, -1)
    return _weights(fit, logsumexp) @ v, logsumexp


def _fit(q, k, causal: bool, added: torch.Tensor | None, scale: float | None) -> torch.Tensor:
    fit = (q * _scale(q, scale)) @ k.mT
    hidden = _hidden(q, k.shape[-2], causal) if added is None else added
    return fit if hidden is None else fit + hidden


def _weights(fit: torch.Tensor, logsumexp: torch.Tensor) -> torch.Tensor:
    """The weight of each key for each query: none where a query sees nothing, whose ``logsumexp`` is minus infinity."""
    return torch.exp(fit - logsumexp.masked_fill(logsumexp == -math.inf, 0.0).unsqueeze(-1))


def _dfit(v, y, logsumexp, dy, fit) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights, and the gradient of the fits."""
    weights = _weights(fit, logsumexp)
    return weights, weights * (dy @ v.mT - (dy * y).sum(-1, keepdim=True))


def _scale(q: torch.Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale

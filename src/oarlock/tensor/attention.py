"""Attention: by PyTorch's kernel for it, which holds no weight for each pair of places, where that takes the sizes, else by products."""

import math
from collections.abc import Sequence

import torch

from oarlock.backend.torch.private import flash_attention, flash_attention_backward
from oarlock.ir.shape_rules import require_at_most

__all__ = ["attend", "attend_backward", "require_heads"]


def attend(query, key, value, *, heads: int, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """``softmax(query key' / sqrt(k / heads)) value`` by head, and the logarithm of what its weights were divided by, [*b heads t].

    Raises ValueError for sizes that do not fit.
    """
    q, k, v = _by_head(query, key, value, heads=heads, causal=causal)
    y, logsumexp = _forward(q, k, v, causal)
    return _joined(y, query), logsumexp.reshape(*query.shape[:-2], heads, query.shape[-2])


def attend_backward(query, key, value, y, logsumexp, dy, heads: int, causal: bool) -> list[torch.Tensor]:
    """The gradients of all three: PyTorch's kernel computes them together."""
    q, k, v = _by_head(query, key, value, heads=heads, causal=causal)
    y, dy, s = _split(y, heads), _split(dy, heads), k.shape[-2]
    logsumexp = logsumexp.reshape(q.shape[:-1])
    if _is_fast(q, v, s):
        flag, mask = _masking(q, s, causal)
        found = flash_attention_backward(dy, q, k, v, y, logsumexp, 0.0, flag, attn_mask=mask)
    else:
        weights = torch.exp(_fit(q, k, causal) - logsumexp.unsqueeze(-1))
        dfit = weights * (dy @ v.mT - (dy * y).sum(-1, keepdim=True)) * _scale(q)
        found = dfit @ k, dfit.mT @ q, weights.mT @ dy
    return [_joined(dx, x) for dx, x in zip(found, (query, key, value), strict=True)]


def _by_head(query, key, value, *, heads: int, causal: bool) -> list[torch.Tensor]:
    """The three as [n heads rows columns], views where they can be. Raises ValueError for sizes that do not fit."""
    require_heads(query, key, value, heads=heads, causal=causal)
    return [_split(x, heads) for x in (query, key, value)]


def require_heads(query, key, value, *, heads: int, causal: bool) -> None:
    """Raises ValueError where sizes are known not to fit."""
    queries, keys = query.shape[-2], key.shape[-2]
    if causal:
        require_at_most(queries, keys, f"{queries} queries are more than {keys} keys, so the first ones would see nothing")
    for name, columns in (("query", query.shape[-1]), ("value", value.shape[-1])):
        if heads < 1 or (isinstance(columns, int) and columns % heads):
            raise ValueError(f"{heads} heads do not divide the {columns} columns of {name}")


def _split(x: torch.Tensor, heads: int) -> torch.Tensor:
    *leading, rows, columns = x.shape
    x = x.reshape(math.prod(leading), rows, heads, columns // heads).transpose(1, 2)
    return x if x.stride(-1) == 1 else x.contiguous()


def _joined(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """[n heads rows columns] in the leading dimensions of `like`, the heads' columns side by side again."""
    return x.transpose(1, 2).reshape(*like.shape[:-2], x.shape[2], x.shape[1] * x.shape[3])


def _is_fast(q: torch.Tensor, v: torch.Tensor, s: int) -> bool:
    """Whether PyTorch's kernel for this takes them: it divides by sizes that are 0, and asks for as many columns of each."""
    there = flash_attention is not None and flash_attention_backward is not None
    return there and q.device.type == "cpu" and q.shape[-1] == v.shape[-1] and q.numel() > 0 and s > 0


def _hidden(q: torch.Tensor, s: int, causal: bool) -> torch.Tensor | None:
    """The mask that is added to hide the keys that a query must not see; None where it sees all."""
    t = q.shape[-2]
    return torch.full((t, s), -math.inf, dtype=q.dtype, device=q.device).triu_(s - t + 1) if causal else None


def _masking(q: torch.Tensor, s: int, causal: bool) -> tuple[bool, torch.Tensor | None]:
    """How PyTorch's kernel is told what to hide: by a flag, which means the first keys, where there are as many as queries."""
    square = q.shape[-2] == s
    return causal and square, None if square else _hidden(q, s, causal)


def _forward(q, k, v, causal: bool) -> Sequence[torch.Tensor]:
    s = k.shape[-2]
    if _is_fast(q, v, s):
        flag, mask = _masking(q, s, causal)
        return flash_attention(q, k, v, 0.0, flag, attn_mask=mask)
    fit = _fit(q, k, causal)
    logsumexp = torch.logsumexp(fit, -1)
    return torch.exp(fit - logsumexp.unsqueeze(-1)) @ v, logsumexp


def _fit(q, k, causal: bool) -> torch.Tensor:
    fit = (q * _scale(q)) @ k.mT
    hidden = _hidden(q, k.shape[-2], causal)
    return fit if hidden is None else fit + hidden


def _scale(q: torch.Tensor) -> float:
    return 1 / math.sqrt(max(1, q.shape[-1]))

"""Attention and its gradients, by PyTorch's flash attention kernel if it supports the inputs, otherwise by matrix products."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import flash_attention, flash_attention_backward
from oarlock.ir.shape_rules import differ, require_at_most
from oarlock.ir.size import format_shape
from oarlock.tensor.dtype import at_least_single

__all__ = [
    "Towards",
    "attend",
    "attend_backward",
    "attend_backward_bias",
    "attention_changes",
    "by_row",
    "fit_of",
    "joined",
    "require_heads",
    "scale_of",
    "split",
    "sum_of_added",
    "summed_to",
    "weights_of",
]

_KEYS_AT_ONCE = 16


def attend(query, key, value, mask=None, bias=None, *, heads: int, causal: bool, scale: float | None = None):
    """Return ``softmax(query key' scale + bias) value`` by head, and the logsumexp of the scores, [*b heads t].

    The mask, [*b heads t s] or with sizes of 1, hides keys if false; a query that sees no key gets zeros. Raises ValueError if the
    sizes do not fit.
    """
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v = split(query, heads), split(key, heads), split(value, heads)
    y, logsumexp = _forward(q, k, v, causal, sum_of_added(q, k, mask, bias, causal), scale)
    leading = query.shape[:-1]
    return joined(y, (*leading, value.shape[-1])), logsumexp.reshape(*leading[:-1], heads, leading[-1])


def attend_backward(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads: int, causal: bool, scale: float | None = None
) -> list[torch.Tensor]:
    """Return the gradients of query, key and value. PyTorch's kernel computes them, unless ``logsumexp`` has a gradient."""
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v, y, dy = split(query, heads), split(key, heads), split(value, heads), split(y, heads), split(dy, heads)
    logsumexp, added = logsumexp.reshape(q.shape[:-1]), sum_of_added(q, k, mask, bias, causal)
    if dlogsumexp is None and _is_fast(q, v, k.shape[-2], added):
        flag, hidden = _masking(q, k.shape[-2], causal, added)
        logsumexp = logsumexp.to(
            torch.promote_types(q.dtype, torch.float32)
        )  # the dtype of PyTorch's kernel, which may not have computed it
        if added is not None:  # for queries that see no key, PyTorch's kernel would subtract minus infinity from itself
            logsumexp = logsumexp.clamp(min=torch.finfo(logsumexp.dtype).min)
        found = flash_attention_backward(dy, q, k, v, y, logsumexp, 0.0, flag, attn_mask=hidden, scale=scale)
    else:
        weights, dfit = _dfit(v, y, logsumexp, dy, fit_of(q, k, causal, added, scale), dlogsumexp)
        dfit, weights = (dfit * scale_of(q, scale)).to(q.dtype), weights.to(q.dtype)  # float32 if the logsumexp is
        found = dfit @ k, dfit.mT @ q, weights.mT @ dy
    dquery, dkey, dvalue = found
    return [joined(dquery, query.shape), joined(dkey, key.shape), joined(dvalue, value.shape)]


def attend_backward_bias(
    query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp=None, *, heads: int, causal: bool, scale: float | None = None
):
    """Return the gradient of the bias: the gradient of all scores, summed to its shape."""
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v, y, dy = (split(x, heads) for x in (query, key, value, y, dy))
    fit = fit_of(q, k, causal, sum_of_added(q, k, mask, bias, causal), scale)
    _, dfit = _dfit(v, y, logsumexp.reshape(q.shape[:-1]), dy, fit, dlogsumexp)
    return summed_to(dfit, bias, q).to(bias.dtype)


def require_heads(query, key, value, mask=None, bias=None, *, heads: int, causal: bool, scale: float | None = None) -> None:
    """Raise ValueError if known sizes do not fit."""
    *_, queries, columns = query.shape
    keys, columns_of_value = key.shape[-2], value.shape[-1]
    if causal:
        require_at_most(queries, keys, "{} queries are more than {} keys, so the first queries would see no key", queries, keys)
    _require_shares(heads, columns, "query")
    _require_shares(heads, columns_of_value, "value")
    if mask is not None:
        _require_by_head(mask.shape[-3:], heads, queries, keys, "mask")
    if bias is not None:
        _require_by_head(bias.shape[-3:], heads, queries, keys, "bias")


def _require_shares(heads: int, columns, name: str) -> None:
    if heads < 1 or (isinstance(columns, int) and columns % heads):
        raise ValueError(f"{heads} heads do not divide the {columns} columns of {name}")


def _require_by_head(shape, heads: int, queries, keys, name: str) -> None:
    by_head, by_query, by_key = shape
    if (by_head != 1 and differ(by_head, heads)) or (by_query != 1 and differ(by_query, queries)) or (by_key != 1 and differ(by_key, keys)):
        raise ValueError(f"{name} ends with {format_shape(shape)}, but heads, queries and keys are {format_shape((heads, queries, keys))}")


def split(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Split [*b rows columns] into [n heads rows columns], a view if possible."""
    *leading, rows, columns = x.shape
    n, each = leading[0] if len(leading) == 1 else math.prod(leading), columns // heads
    if x.is_contiguous():  # one call, as two would take as long as the rest of a small attention
        return x.as_strided((n, heads, rows, each), (rows * columns, each, columns, 1))
    x = x.reshape(n, rows, heads, each).transpose(1, 2)
    return x if x.stride(-1) == 1 else x.contiguous()


def joined(x: torch.Tensor, shape) -> torch.Tensor:
    """Join the heads of [n heads rows columns] in the last dimension of `shape`."""
    return x.transpose(1, 2).reshape(*shape)


def _is_short(q: torch.Tensor, s: int, added: torch.Tensor | None) -> bool:
    """Return whether products are faster: PyTorch's kernel adds a mask to the last few keys of a row one by one."""
    return added is not None and s < _KEYS_AT_ONCE and q.element_size() >= 4


def _is_fast(q: torch.Tensor, v: torch.Tensor, s: int, added: torch.Tensor | None) -> bool:
    """Return whether PyTorch's kernel supports the inputs: no empty sizes, equal numbers of columns.

    It computes no gradient of the bias.
    """
    there = flash_attention is not None and flash_attention_backward is not None
    fits = there and q.device.type == "cpu" and q.shape[-1] == v.shape[-1] and q.numel() > 0 and s > 0
    return fits and (added is None or not added.requires_grad)


def _all_see(added: torch.Tensor | None) -> bool:
    """Return whether each query sees a key according to the bias. For others, PyTorch's result depends on the version."""
    return added is None or added.amax(-1).amin().item() > -math.inf


def by_row(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return a mask or a bias as [n heads t s], with sizes of 1 to broadcast."""
    return x if x.dim() == 4 else x.reshape(q.shape[0], *x.shape[-3:])


def sum_of_added(q, k, mask, bias, causal: bool) -> torch.Tensor | None:
    """Return the mask and the bias as one bias of the scores, [n heads t s] or with sizes of 1; None if there is neither."""
    if mask is None and bias is None:
        return None
    added = [] if mask is None else [torch.where(by_row(mask, q), q.new_zeros(()), -math.inf)]
    added += [] if bias is None else [by_row(bias, q)]
    hidden = _hidden(q, k.shape[-2], causal)
    added += [] if hidden is None else [hidden]
    return sum(added[1:], added[0])


def _hidden(q: torch.Tensor, s: int, causal: bool) -> torch.Tensor | None:
    """Return the bias of causal attention, or None."""
    t = q.shape[-2]
    return torch.full((t, s), -math.inf, dtype=q.dtype, device=q.device).triu_(s - t + 1) if causal else None


def _masking(q: torch.Tensor, s: int, causal: bool, added: torch.Tensor | None) -> tuple[bool, torch.Tensor | None]:
    """Return the arguments of PyTorch's kernel: its causal flag, which requires as many keys as queries, and the bias."""
    if added is not None:
        return False, added.expand(-1, -1, q.shape[-2], s)
    square = q.shape[-2] == s
    return causal and square, None if square else _hidden(q, s, causal)


def _forward(q, k, v, causal: bool, added: torch.Tensor | None, scale: float | None) -> Sequence[torch.Tensor]:
    s = k.shape[-2]
    if not _is_short(q, s, added) and _is_fast(q, v, s, added) and _all_see(added):
        flag, hidden = _masking(q, s, causal, added)
        return flash_attention(q, k, v, 0.0, flag, attn_mask=hidden, scale=scale)
    fit = fit_of(q, k, causal, added, scale)
    if s == 0:
        return fit @ v, fit.new_full(fit.shape[:-1], -math.inf)
    largest = (
        fit.detach().amax(-1, keepdim=True).clamp_(min=torch.finfo(fit.dtype).min)
    )  # finite for queries that see no key, so that it can be subtracted
    weights = fit.sub_(largest).exp_()
    total = weights.sum(-1, keepdim=True)  # at least 1, or 0 if no key is visible
    return (weights / total.clamp(min=1.0)) @ v, total.log().add_(largest).squeeze(-1)


def fit_of(q, k, causal: bool, added: torch.Tensor | None, scale: float | None) -> torch.Tensor:
    """Return the scores before the softmax, in new memory."""
    hidden = _hidden(q, k.shape[-2], causal) if added is None else added
    if q.element_size() < 4:  # in half precision, products may overflow
        fit = (q * scale_of(q, scale)) @ k.mT
        return fit if hidden is None else fit + hidden
    fit = q @ k.mT
    return fit.mul_(scale_of(q, scale)) if hidden is None else torch.add(hidden, fit, alpha=scale_of(q, scale))


def weights_of(fit: torch.Tensor, logsumexp: torch.Tensor) -> torch.Tensor:
    """Return the attention weights; 0 for queries that see no key, whose ``logsumexp`` is minus infinity."""
    return torch.exp(fit - logsumexp.masked_fill(logsumexp == -math.inf, 0.0).unsqueeze(-1))


def _dfit(v, y, logsumexp, dy, fit, dlogsumexp) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights, and the gradient of the scores."""
    weights = weights_of(fit, logsumexp)
    along = (dy * y).sum(-1, keepdim=True)
    if dlogsumexp is not None:
        along = along - dlogsumexp.reshape(logsumexp.shape).to(along.dtype).unsqueeze(-1)
    return weights, weights * (dy @ v.mT - along)


def summed_to(of_scores: torch.Tensor, bias: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Sum the gradient of the scores to the shape of the bias."""
    return of_scores.sum_to_size(by_row(bias, q).shape).reshape(bias.shape)


def scale_of(q: torch.Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale


# Second-order gradients


class Towards(NamedTuple):
    """The directions, each with the shape of its first-order gradient; None for gradients that are not used."""

    query: torch.Tensor | None
    key: torch.Tensor | None
    value: torch.Tensor | None
    bias: torch.Tensor | None


def attention_changes(
    query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, towards: Towards, *, heads: int, causal: bool, scale: float | None
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the sum of all first-order gradients times their directions.

    They are with respect to query, key, value, y, logsumexp, dy, dlogsumexp, and the scores [n heads t s], which the caller sums to the
    shape of the bias. With the weights ``P``, the gradient of the scores is ``D = P (dy value' - rowsum(dy y) + dlogsumexp)``, and the
    gradients of query, key and value are ``D key``, ``D' query`` and ``P' dy``. Intermediate values are at least float32.
    """
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal)
    q, k, v, y_, g = (split(at_least_single(each), heads) for each in (query, key, value, y, dy))
    logs = at_least_single(logsumexp).reshape(q.shape[:-1])
    added = sum_of_added(q, k, mask, None if bias is None else at_least_single(bias), causal)
    factor = scale_of(q, scale)
    weights = weights_of(fit_of(q, k, causal, added, scale), logs)
    apart = g @ v.mT - (g * y_).sum(-1, keepdim=True)
    if dlogsumexp is not None:
        apart = apart + at_least_single(dlogsumexp).reshape(logs.shape).unsqueeze(-1)
    dfit = weights * apart
    to_q, to_k, to_v = (None if each is None else split(at_least_single(each), heads) for each in towards[:3])
    of_dfit = torch.zeros_like(weights)  # the gradient with respect to dfit
    if to_q is not None:
        of_dfit = of_dfit + factor * (to_q @ k.mT)
    if to_k is not None:
        of_dfit = of_dfit + factor * (q @ to_k.mT)
    if towards.bias is not None:
        of_dfit = of_dfit + by_row(at_least_single(towards.bias), q)
    shares = weights * of_dfit
    of_scores = dfit * of_dfit if to_v is None else dfit * of_dfit + weights * (g @ to_v.mT)
    total = shares.sum(-1, keepdim=True)
    of_q, of_k, of_g = factor * (of_scores @ k), factor * (of_scores.mT @ q), shares @ v - total * y_
    if to_k is not None:
        of_q = of_q + factor * (dfit @ to_k)
    if to_q is not None:
        of_k = of_k + factor * (dfit.mT @ to_q)
    if to_v is not None:
        of_g = of_g + weights @ to_v
    of_logs = -of_scores.sum(-1)
    made = (of_q, query.shape), (of_k, key.shape), (shares.mT @ g, value.shape), (-total * g, y.shape)
    rows = [joined(each, shape).to(query.dtype) for each, shape in made]
    return (
        *rows, of_logs.reshape(logsumexp.shape).to(logsumexp.dtype), joined(of_g, dy.shape).to(dy.dtype),
        total.reshape(logsumexp.shape).to(logsumexp.dtype), of_scores,
    )  # fmt: skip

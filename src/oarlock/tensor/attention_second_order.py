"""Second-order gradients of attention, by matrix products."""

from typing import NamedTuple

import torch

from oarlock.tensor.attention import by_row, fit_of, joined, require_heads, scale_of, split, sum_of_added, weights_of
from oarlock.tensor.dtype import at_least_single

__all__ = ["Towards", "attention_changes"]


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

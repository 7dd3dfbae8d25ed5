"""First values that are more than one number drawn for each element: orthogonal, identical, sparse; and normal ones within bounds.

All are float64 and follow from the key alone.
"""

import math
from collections.abc import Callable, Mapping

import torch

from oarlock.runtime import random

__all__ = ["MATRICES", "truncated_normal"]


def truncated_normal(
    shape: tuple[int, ...], key: int, *, mean: float, deviation: float, low: float, high: float, start: int = 0
) -> torch.Tensor:
    """Normal numbers of those from `low` to `high`: the inverse of the cumulative distribution at uniform ones."""
    below, above = (math.erf((bound - mean) / deviation / math.sqrt(2.0)) for bound in (low, high))
    places = random.uniform(shape, key, start=start) * (above - below) + below
    return (torch.erfinv(places) * (deviation * math.sqrt(2.0)) + mean).clamp_(low, high)


def _orthogonal(shape: tuple[int, ...], key: int, *, gain: float) -> torch.Tensor:
    """Rows, or columns where there are fewer of them, of length `gain` at right angles, evenly spread (Saxe et al., 2014).

    The first axis has the rows, all others the columns. A QR decomposition of normal numbers, whose signs make it unique.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = random.normal((max(rows, columns), min(rows, columns)), key)
    q, r = torch.linalg.qr(drawn)
    q = q * torch.where(torch.diagonal(r) < 0.0, -1.0, 1.0)
    return ((q if rows >= columns else q.T) * gain).reshape(shape)


def _identity(shape: tuple[int, ...], key: int, *, gain: float, groups: int) -> torch.Tensor:
    """`gain` where the row is the column, of each of `groups` of rows; of filters, in the middle of their windows."""
    value = torch.zeros(shape, dtype=torch.float64)
    rows = shape[0] // groups
    if math.prod(shape):
        place = torch.arange(min(rows, shape[1]))
        row = (torch.arange(groups)[:, None] * rows + place).flatten()
        value[(row, place.repeat(groups), *(size // 2 for size in shape[2:]))] = gain
    return value


def _sparse(shape: tuple[int, ...], key: int, *, sparsity: float, deviation: float) -> torch.Tensor:
    """Normal numbers, of which a share of each column, rounded up, is 0 (Martens, 2010)."""
    rows, columns = shape
    value = random.normal(shape, key) * deviation
    order = random.uniform((columns, rows), random.key_of(key, "zeros")).argsort(dim=1, stable=True)
    value.T.scatter_(1, order[:, : math.ceil(sparsity * rows)], 0.0)
    return value


MATRICES: Mapping[str, Callable[..., torch.Tensor]] = {"orthogonal": _orthogonal, "identity": _identity, "sparse": _sparse}
"""The initializers that fill a variable as a whole, by name: each takes its shape, a key, and its attributes."""

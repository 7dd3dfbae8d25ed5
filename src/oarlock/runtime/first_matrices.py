"""Initial values that are not drawn element by element: orthogonal, identity and sparse matrices; and truncated normal numbers.

All are float64 and determined by the key.
"""

import math
from collections.abc import Callable, Mapping

import torch

from oarlock.runtime import random

__all__ = ["MATRICES", "truncated_normal"]


def truncated_normal(
    shape: tuple[int, ...], key: int, *, mean: float, deviation: float, low: float, high: float, start: int = 0
) -> torch.Tensor:
    """Return normal numbers truncated to [low, high], by applying the inverse cumulative distribution to uniform numbers."""
    below, above = (math.erf((bound - mean) / deviation / math.sqrt(2.0)) for bound in (low, high))
    places = random.uniform(shape, key, start=start) * (above - below) + below
    return (torch.erfinv(places) * (deviation * math.sqrt(2.0)) + mean).clamp_(low, high)


def _orthogonal(shape: tuple[int, ...], key: int, *, gain: float) -> torch.Tensor:
    """Return orthogonal rows of length `gain`, or columns if there are fewer of them, uniformly distributed (Saxe et al., 2014).

    Rows are the first axis, columns all others. It uses the QR decomposition of normal numbers, with signs chosen to make it unique.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = random.normal((max(rows, columns), min(rows, columns)), key)
    q, r = torch.linalg.qr(drawn)
    q = q * torch.where(torch.diagonal(r) < 0.0, -1.0, 1.0)
    return ((q if rows >= columns else q.T) * gain).reshape(shape)


def _identity(shape: tuple[int, ...], key: int, *, gain: float, groups: int) -> torch.Tensor:
    """Return `gain` on the diagonal, separately for each of `groups` groups of rows; for convolution filters, at the window's center."""
    value = torch.zeros(shape, dtype=torch.float64)
    rows = shape[0] // groups
    if math.prod(shape):
        place = torch.arange(min(rows, shape[1]))
        row = (torch.arange(groups)[:, None] * rows + place).flatten()
        value[(row, place.repeat(groups), *(size // 2 for size in shape[2:]))] = gain
    return value


def _sparse(shape: tuple[int, ...], key: int, *, sparsity: float, deviation: float) -> torch.Tensor:
    """Return normal numbers with the share `sparsity` of each column, rounded up, set to 0 (Martens, 2010)."""
    rows, columns = shape
    value = random.normal(shape, key) * deviation
    order = random.uniform((columns, rows), random.key_of(key, "zeros")).argsort(dim=1, stable=True)
    value.T.scatter_(1, order[:, : math.ceil(sparsity * rows)], 0.0)
    return value


MATRICES: Mapping[str, Callable[..., torch.Tensor]] = {"orthogonal": _orthogonal, "identity": _identity, "sparse": _sparse}
"""The initializers that need the whole matrix, by name. Each takes a shape, a key and its attributes."""

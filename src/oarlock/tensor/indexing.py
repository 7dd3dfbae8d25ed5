"""Index tensors and rows by number, checked before PyTorch's kernels use them, and products of rows with a matrix.

Functions with `out` write into it, or into new memory if it is None.
"""

from collections.abc import Sequence

import torch

__all__ = [
    "add_along",
    "add_rows",
    "as_rows",
    "indices_along",
    "onto_rows",
    "places_of",
    "require_rows",
    "rows_times",
    "take",
    "take_along",
    "take_rows",
]

# Indices


_take = torch.ops.aten.index.Tensor


def places_of(index: torch.Tensor, count: int, axis: int) -> torch.Tensor:
    """Return nonnegative indices for an axis of size `count`; negative ones count from the end.

    Raises ValueError if one is out of range.
    """
    if index.numel() == 0:
        return index
    low, high = (int(end) for end in torch.aminmax(index))
    if low < -count or high >= count:
        raise ValueError(f"index {low if low < -count else high} is out of range for axis {axis} of size {count}")
    return index if low >= 0 else torch.where(index < 0, index + count, index)


def take(x: torch.Tensor, indices: Sequence[torch.Tensor], axes: Sequence[int]) -> torch.Tensor:
    """Gather elements of `x` at indices along `axes`. Raises ValueError if one is out of range."""
    if not x.is_cpu or not x.numel():  # PyTorch does not check indices into an empty tensor
        return _take(x, indices_along(x.shape, indices, axes))
    try:  # on a CPU, PyTorch checks each index itself
        return _take(x, _by_axis(indices, axes))
    except IndexError:
        indices_along(x.shape, indices, axes)
        raise


def indices_along(x_shape: Sequence[int], indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    """Return checked indices by axis, None for axes that are taken whole. Raises ValueError if one is out of range."""
    return _by_axis([places_of(index, x_shape[axis], axis) for axis, index in zip(axes, indices, strict=True)], axes)


def _by_axis(indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    found: list[torch.Tensor | None] = [None] * (axes[-1] + 1)
    for axis, index in zip(axes, indices, strict=True):
        found[axis] = index
    return found


# By number


def take_rows(x, rows, out=None):
    """Gather rows by number."""
    if not _checks_rows(x):
        _require_rows(rows, x.shape[0], "x")
    try:
        return torch.index_select(x, 0, rows, out=out)
    except (IndexError, RuntimeError):
        _require_rows(rows, x.shape[0], "x")
        raise


def add_rows(values, rows, shape, out=None):
    """Add ``values`` to rows of zeros by number."""
    y = values.new_zeros(shape) if out is None else out.zero_()
    if rows.dim() != 1:
        rows, values = rows.flatten(), values.reshape(rows.numel(), *y.shape[1:])
    if not _checks_rows(y):
        _require_rows(rows, y.shape[0], "like")
    try:
        return y.index_add_(0, rows, values)
    except (IndexError, RuntimeError):
        _require_rows(rows, y.shape[0], "like")
        raise


def take_along(x, rows, axis: int):
    """Gather rows by number along an axis."""
    _require_rows(rows, x.shape[axis], "x")
    axis %= x.dim()
    return torch.index_select(x, axis, rows.flatten()).view((*x.shape[:axis], *rows.shape, *x.shape[axis + 1 :]))


def add_along(values, rows, shape, axis: int):
    """Add ``values`` to rows of zeros by number along an axis."""
    _require_rows(rows, shape[axis], "like")
    axis %= len(shape)
    values = values.reshape(*shape[:axis], rows.numel(), *shape[axis + 1 :])
    return values.new_zeros(shape).index_add_(axis, rows.flatten(), values)


def _checks_rows(x: torch.Tensor) -> bool:
    """Return whether PyTorch checks row numbers itself, which is faster than checking them first."""
    return x.is_cpu and x.numel() > 0


def require_rows(rows: torch.Tensor, param: torch.Tensor) -> None:
    """Raise ValueError if a number is not a row of ``param``."""
    _require_rows(rows, param.shape[0], "param")


def _require_rows(numbers: torch.Tensor, count: int, owner: str) -> None:
    """Raise ValueError if a number is not one of `count` rows."""
    wrong = (numbers < 0) | (numbers >= count)
    if wrong.any():
        asked = int(numbers[wrong][0])
        raise ValueError(f"row {asked} is out of range: {owner} has {count} row{'' if count == 1 else 's'}, numbered from 0")


# Products with a matrix


def rows_times(x, w, bias=None, out=None):
    """Multiply rows in any number of dimensions by a matrix. ``out`` is written as one matrix if its rows are equally spaced."""
    if out is None:
        return torch.matmul(x, w) if bias is None else torch.addmm(bias, as_rows(x), w).view(*x.shape[:-1], w.shape[-1])
    rows, out_rows = _matrix_of(x), _matrix_of(out)
    if rows is None or out_rows is None:
        return out.copy_(rows_times(x, w, bias))
    torch.mm(rows, w, out=out_rows) if bias is None else torch.addmm(bias, rows, w, out=out_rows)
    return out


def _matrix_of(x: torch.Tensor) -> torch.Tensor | None:
    """Return ``x`` viewed as one matrix; None if its rows are not equally spaced in memory."""
    try:
        return x.view(x.shape[:-1].numel(), x.shape[-1])
    except RuntimeError:
        return None


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` as one matrix, so that a product with another one is a single call."""
    dimensions = x.dim()
    return x if dimensions == 2 else x.flatten(0, -2) if dimensions > 2 else x.unsqueeze(0)


def onto_rows(base: torch.Tensor, x: torch.Tensor, w: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Multiply rows by a matrix and add ``base``."""
    if out is None:
        return torch.addmm(as_rows(base), as_rows(x), w).view_as(base)
    torch.addmm(as_rows(base), as_rows(x), w, out=as_rows(out))
    return out

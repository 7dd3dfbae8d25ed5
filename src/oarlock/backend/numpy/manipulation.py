"""Constants, shapes, rows by number, and sequences with row splits."""

from itertools import pairwise

import numpy as np

from oarlock.backend.numpy.kernels import kernel

__all__: list[str] = []


# Constants


@kernel
def full(*, shape, value, dtype):
    return np.full(shape, value, dtype.value)


@kernel
def full_like(like, *, value, dtype):
    return np.full(like, value, dtype.value)


@kernel
def full_batch_size_like(like, *, axis, shape, value, dtype):
    return np.full((like[axis], *shape), value, dtype.value)


@kernel
def numel(like, *, dtype):
    return np.asarray(int(np.prod(like)), dtype.value)


@kernel
def one_hot(ids, *, depth):
    if ids.size and not (ids.min() >= 0 and ids.max() < depth):
        raise ValueError(f"an id is not in 0 to {depth - 1}")
    return (ids[..., None] == np.arange(depth)).astype("float32")


# Shapes


@kernel
def reshape(x, *, shape):
    return x.reshape([size if isinstance(size, int) else -1 for size in shape])


@kernel
def reshape_like(x, like):
    return x.reshape(like)


@kernel
def match_shape(x, like):
    return x


@kernel
def match_last_axis(x, like):
    return x


@kernel
def flatten(x, *, start):
    return x.reshape(*x.shape[:start], int(np.prod(x.shape[start:])))


@kernel
def transpose(x, *, axes):
    return x.transpose(axes)


@kernel
def concat(xs, *, axis):
    return np.concatenate(xs, axis)


@kernel
def stack(xs, *, axis):
    return np.stack(xs, axis)


@kernel
def split(x, *, sections, axis):
    return np.split(x, sections, axis)


@kernel
def split_like(x, like, *, axis):
    return np.split(x, np.cumsum([shape[axis] for shape in like])[:-1], axis)


def _range(length, axis, start, stop, clip):
    if clip:
        return slice(*slice(start, stop).indices(length))
    first, end = (value + length if value < 0 else value for value in (start, length if stop is None else stop))
    if not 0 <= first <= end <= length:
        raise ValueError(f"axis {axis} has the size {length}, which {start} to {stop} exceeds")
    return slice(first, end)


def _part(count, length, axis, start, stop, step, clip):
    whole = [slice(None)] * count
    part = _range(length, axis, start, stop, clip)
    whole[axis] = slice(part.start, part.stop, step)
    return tuple(whole)


@kernel
def slice_(x, *, axis, start, stop=None, step=None, clip=False):
    return x[_part(x.ndim, x.shape[axis], axis, start, stop, step, clip)]


@kernel
def slice_dx(x_shape, dy, *, axis, start, stop=None, step=None, clip=False):
    dx = np.zeros(x_shape, dy.dtype)
    dx[_part(len(x_shape), x_shape[axis], axis, start, stop, step, clip)] = dy
    return dx


# Rows by number


def _require_rows(rows, count):
    if rows.size and not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(f"a row number is out of range: there are {count} rows")


@kernel
def nonzero(condition, *, value):
    places = np.argwhere(condition == value)
    return places[:, 0] if condition.ndim == 1 else places


@kernel
def arange_like(like):
    return np.arange(like[0])


@kernel
def gather(x, rows, *, axis=None, sparse=False):
    _require_rows(rows, x.shape[axis or 0])
    return np.take(x, rows, axis or 0)


@kernel
def scatter_add(values, rows, like, *, axis=None):
    axis = (axis or 0) % len(like)
    _require_rows(rows, like[axis])
    y = np.zeros(like, values.dtype)
    values = values.reshape(*like[:axis], rows.size, *like[axis + 1 :])
    np.add.at(np.moveaxis(y, axis, 0), rows.reshape(-1), np.moveaxis(values, axis, 0))
    return y


@kernel
def merge(condition, yes, no):
    y = np.empty((len(condition), *yes.shape[1:]), yes.dtype)
    y[condition], y[~condition] = yes, no
    return y


@kernel
def merge_dyes(condition, yes_shape, dy):
    return dy[condition]


@kernel
def merge_dno(condition, no_shape, dy):
    return dy[~condition]


def _spread(condition, shape, values):
    y = np.zeros(shape, values.dtype)
    y[condition] = values
    return y


@kernel
def merge_dyes_ddy(condition, dy_shape, ddyes):
    return _spread(condition, dy_shape, ddyes)


@kernel
def merge_dno_ddy(condition, dy_shape, ddno):
    return _spread(~condition, dy_shape, ddno)


# Row splits


def _lengths(splits):
    return np.diff(splits)


@kernel
def sequence_lengths(splits):
    return _lengths(splits)


@kernel
def sequence_splits(splits, elements):
    return np.searchsorted(elements, splits)


def _parts(x, splits):
    return [x[first:end] for first, end in pairwise(splits)]


@kernel
def sequence_sum(x, splits):
    return np.stack([part.sum(0, dtype=x.dtype) for part in _parts(x, splits)]) if len(splits) > 1 else x[:0]


@kernel
def sequence_mean(x, splits):
    lengths = np.maximum(_lengths(splits), 1).astype(x.dtype)
    return sequence_sum(x, splits) / lengths.reshape(-1, *[1] * (x.ndim - 1))


@kernel
def sequence_mean_dx(splits, dy, x_shape):
    lengths = _lengths(splits)
    return np.repeat(dy / np.maximum(lengths, 1).astype(dy.dtype).reshape(-1, *[1] * (dy.ndim - 1)), lengths, 0)


@kernel
def sequence_expand(x, splits, like):
    return np.repeat(x, _lengths(splits), 0)


@kernel
def sequence_softmax(x, splits):
    parts = [np.exp(part - part.max(0, initial=-np.inf)) for part in _parts(x, splits)]
    return np.concatenate([part / part.sum(0) for part in parts]) if parts else x


@kernel
def sequence_softmax_dx(y, dy, splits):
    pairs = zip(_parts(y, splits), _parts(dy, splits), strict=True)
    parts = [one * (given - (one * given).sum(0)) for one, given in pairs]
    return np.concatenate(parts) if parts else dy


@kernel
def sequence_pad(x, splits, *, fill):
    lengths = _lengths(splits)
    padded = np.full((len(lengths), int(lengths.max(initial=0)), *x.shape[1:]), fill, x.dtype)
    for number, part in enumerate(_parts(x, splits)):
        padded[number, : len(part)] = part
    return padded


@kernel
def sequence_unpad(padded, splits, like):
    rows = [row[:length] for row, length in zip(padded, _lengths(splits), strict=True)]
    return np.concatenate(rows) if rows else np.zeros((0, *padded.shape[2:]), padded.dtype)


@kernel
def sequence_unpad_dpadded(splits, dy, padded_shape):
    dpadded = np.zeros(padded_shape, dy.dtype)
    for number, part in enumerate(_parts(dy, splits)):
        dpadded[number, : len(part)] = part
    return dpadded


def _ends(splits, *, last):
    """Return the nonempty sequences, and the number of the first or last element of each."""
    kept = np.flatnonzero(_lengths(splits))
    return kept, splits[kept + 1] - 1 if last else splits[kept]


def _one_of_each(x, splits, *, last):
    kept, elements = _ends(splits, last=last)
    y = np.zeros((len(splits) - 1, *x.shape[1:]), x.dtype)
    y[kept] = x[elements]
    return y


def _back_to_one(splits, dy, x_shape, *, last):
    kept, elements = _ends(splits, last=last)
    dx = np.zeros(x_shape, dy.dtype)
    dx[elements] = dy[kept]
    return dx


@kernel
def sequence_first(x, splits):
    return _one_of_each(x, splits, last=False)


@kernel
def sequence_first_dx(splits, dy, x_shape):
    return _back_to_one(splits, dy, x_shape, last=False)


@kernel
def sequence_last(x, splits):
    return _one_of_each(x, splits, last=True)


@kernel
def sequence_last_dx(splits, dy, x_shape):
    return _back_to_one(splits, dy, x_shape, last=True)


@kernel
def sequence_elements(splits, rows, like):
    parts = [np.arange(splits[row], splits[row + 1]) for row in rows]
    return np.concatenate([np.zeros(0, np.int64), *parts]), np.cumsum([0, *map(len, parts)])


@kernel
def select_branch(stacks):
    (row,) = [row for stack in stacks for row in stack]
    return row

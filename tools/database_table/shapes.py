"""Rearranging, repeating and selecting elements."""

from itertools import pairwise

from database_judge import Unmapped

import oarlock as ol
from oarlock import op
from oarlock.op.complex_parts import conjugated

__all__ = ["CALLS"]


def sizes(shape):
    """A shape given as one argument or as several."""
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], list | tuple) else tuple(shape)


def reshape(x, *shape):
    if shape and not isinstance(shape[0], int | list | tuple):
        raise Unmapped("another dtype of the same bytes")
    return op.reshape(x, shape=sizes(shape))


def expand(x, *shape):
    return op.broadcast_to(x, shape=sizes(shape))


def transpose(x, first, second):
    return op.swapaxes(x, first, second) if x.shape else op.assign(x)


def permute(x, *dims):
    return op.transpose(x, axes=tuple(each % len(x.shape) for each in sizes(dims)))


def squeeze(x, dim=None):
    if dim is None:
        return op.squeeze(x)
    dims = tuple(dim) if isinstance(dim, list | tuple) else (dim,)
    if not x.shape:
        return op.assign(x)
    dims = tuple(each for each in dims if x.shape[each] == 1)
    return op.squeeze(x, *dims) if dims else op.assign(x)


def split(x, size, dim=0):
    axis = dim % len(x.shape)
    if isinstance(size, list | tuple):
        bounds = [sum(size[:number]) for number in range(len(size) + 1)]
    else:
        bounds = [*range(0, x.shape[axis], size), x.shape[axis]]
    return [op.slice(x, axis=axis, start=start, stop=stop) for start, stop in pairwise(bounds)]


def chunk(x, chunks, dim=0):
    return op.chunk(x, chunks, axis=dim)


def unbind(x, dim=0):
    return op.unbind(x, axis=dim)


def flatten(x, start_dim=0, end_dim=-1):
    rank = len(x.shape)
    if not rank:
        return op.reshape(x, shape=(1,))
    start, end = start_dim % rank, end_dim % rank
    return op.reshape(x, shape=(*x.shape[:start], -1, *x.shape[end + 1 :])) if 0 not in x.shape else _flat(x, start, end)


def _flat(x, start, end):
    joined = 1
    for size in x.shape[start : end + 1]:
        joined *= size
    return op.reshape(x, shape=(*x.shape[:start], joined, *x.shape[end + 1 :]))


def unflatten(x, dim, shape):
    return op.unflatten(x, axis=dim, sizes=shape)


def repeat(x, *repeats):
    return op.tile(x, repeats=sizes(repeats))


def tile(x, repeats):
    return op.tile(x, repeats=(1,) * (len(x.shape) - len(repeats)) + tuple(repeats))


def roll(x, shifts, dims=()):
    shifts = tuple(shifts) if isinstance(shifts, list | tuple) else (shifts,)
    dims = tuple(dims) if isinstance(dims, list | tuple) else (dims,)
    if dims:
        return op.roll(x, shifts=shifts, axes=dims)
    return op.reshape(op.roll(op.reshape(x, shape=(-1,)), shifts=shifts, axes=(0,)), shape=x.shape)


def diagonal(x, offset=0, dim1=0, dim2=1):
    return op.diagonal(x, offset=offset, axes=(dim1, dim2))


def cat(xs, dim=0):
    return op.concat([x for x in xs if not (isinstance(x, ol.Var) and x.shape == (0,))] or xs, axis=dim)


def stack(xs, dim=0):
    return op.stack(xs, axis=dim if dim >= 0 else dim + len(xs[0].shape) + 1)


def meshgrid(*xs, indexing="ij"):
    return op.meshgrid(*(xs[0] if isinstance(xs[0], list | tuple) else xs), indexing=indexing)


def many(function):
    """A function of several variables, passed as a list or one by one."""
    return lambda *xs: function(*(xs[0] if isinstance(xs[0], list | tuple) else xs))


def many_each(function):
    """A function of one variable that accepts several in PyTorch."""
    return lambda *xs: (
        [function(x) for x in (xs[0] if isinstance(xs[0], list | tuple) else xs)]
        if len(xs) != 1 or isinstance(xs[0], list | tuple)
        else function(xs[0])
    )


def rot90(x, k=1, dims=(0, 1)):
    return op.rot90(x, k=k, axes=tuple(dims))


def tensor_split(x, sections, dim=0):
    if isinstance(sections, ol.Var):
        raise Unmapped("indices that depend on values")
    return op.tensor_split(x, sections, axis=dim)


def shift(sign):
    def call(x, dim=None):
        axes = tuple(range(len(x.shape))) if dim is None else tuple(dim) if isinstance(dim, list | tuple) else (dim,)
        return op.roll(x, shifts=tuple((x.shape[axis] + (sign < 0)) // 2 for axis in axes), axes=axes)

    return call


CALLS = {
    "fft.fftshift": shift(1),
    "fft.ifftshift": shift(-1),
    "H": lambda x: conjugated(op.swapaxes(x, 0, 1)) if x.shape else op.assign(x),
    "T": lambda x: op.transpose(x, axes=tuple(range(len(x.shape)))[::-1]),
    "alias_copy": op.assign,
    "atleast_1d": many_each(op.atleast_1d),
    "atleast_2d": many_each(op.atleast_2d),
    "atleast_3d": many_each(op.atleast_3d),
    "block_diag": many(op.block_diag),
    "broadcast_tensors": many(op.broadcast_tensors),
    "cartesian_prod": many(op.cartesian_prod),
    "column_stack": many(op.column_stack),
    "combinations": lambda x, r=2, with_replacement=False: op.combinations(x, r=r, with_replacement=with_replacement),
    "diag": lambda x, diagonal=0: op.diag(x, offset=diagonal),
    "diag_embed": lambda x, offset=0, dim1=-2, dim2=-1: op.diag_embed(x, offset=offset, axes=(dim1, dim2)),
    "diagflat": lambda x, offset=0: op.diagflat(x, offset=offset),
    "diagonal_scatter": lambda x, values, offset=0, dim1=0, dim2=1: op.diagonal_scatter(x, values, offset=offset, axes=(dim1, dim2)),
    "dsplit": op.dsplit,
    "dstack": many(op.dstack),
    "hsplit": op.hsplit,
    "hstack": many(op.hstack),
    "mH": lambda x: conjugated(op.swapaxes(x, -2, -1)),
    "mT": lambda x: op.swapaxes(x, -2, -1),
    "meshgrid.list_of_tensors": meshgrid,
    "meshgrid.variadic_tensors": meshgrid,
    "movedim": op.moveaxis,
    "nn.functional.channel_shuffle": lambda x, groups: op.channel_shuffle(x, groups=groups),
    "nn.functional.pixel_shuffle": lambda x, upscale_factor: op.pixel_shuffle(x, factor=upscale_factor),
    "nn.functional.pixel_unshuffle": lambda x, downscale_factor: op.pixel_unshuffle(x, factor=downscale_factor),
    "rot90": rot90,
    "tensor_split": tensor_split,
    "trace": op.trace,
    "vsplit": op.vsplit,
    "vstack": many(op.vstack),
    "broadcast_to": expand,
    "cat": cat,
    "chunk": chunk,
    "clone": lambda x, *, memory_format=None: op.assign(x),
    "contiguous": lambda x, memory_format=None: op.assign(x),
    "diagonal": diagonal,
    "diagonal_copy": diagonal,
    "expand": expand,
    "expand_as": op.broadcast_to_like,
    "expand_copy": expand,
    "flatten": flatten,
    "flip": lambda x, dims: op.flip(x, axes=tuple(dims)) if dims else op.assign(x),
    "fliplr": lambda x: op.flip(x, axes=(1,)),
    "flipud": lambda x: op.flip(x, axes=(0,)),
    "linalg.diagonal": lambda x, *, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2),
    "permute": permute,
    "permute_copy": permute,
    "ravel": lambda x: op.reshape(x, shape=(-1,)),
    "repeat": repeat,
    "reshape": reshape,
    "reshape_as": op.reshape_like,
    "roll": roll,
    "split": split,
    "split.list_args": split,
    "split_with_sizes": split,
    "split_with_sizes_copy": split,
    "squeeze": squeeze,
    "squeeze.multiple": squeeze,
    "squeeze_copy": squeeze,
    "stack": stack,
    "sum_to_size": lambda x, *shape: op.sum_to_shape(x, op.full(shape=sizes(shape), value=0.0, dtype=x.dtype)),
    "t": lambda x: op.matrix_transpose(x) if len(x.shape) == 2 else op.assign(x) if len(x.shape) < 2 else op.transpose(x, axes=(1, 0)),
    "tile": tile,
    "transpose": transpose,
    "transpose_copy": transpose,
    "tril": lambda x, diagonal=0: op.tril(x, diagonal=diagonal),
    "triu": lambda x, diagonal=0: op.triu(x, diagonal=diagonal),
    "unbind": unbind,
    "unbind_copy": unbind,
    "unflatten": unflatten,
    "unfold": lambda x, dimension, size, step: op.windows(x, axis=dimension, size=size, step=step),
    "unfold_copy": lambda x, dimension, size, step: op.windows(x, axis=dimension, size=size, step=step),
    "unsafe_chunk": chunk,
    "unsafe_split": split,
    "unsqueeze": lambda x, dim: op.unsqueeze(x, dim),
    "unsqueeze_copy": lambda x, dim: op.unsqueeze(x, dim),
    "view": reshape,
    "view_as": op.reshape_like,
    "view_copy": reshape,
}
CALLS["t_copy"] = CALLS["t"]

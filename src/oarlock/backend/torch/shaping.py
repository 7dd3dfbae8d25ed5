"""Shapes: variants that are written by hand. A view is copied to where it is wanted."""

from oarlock.backend.torch.variants import out_variant
from oarlock.op.shaping import flatten, reshape, reshape_like, slice_, slice_dx, transpose, write_slice


@out_variant(reshape_like)
def reshape_like_out(x, like, *, out):
    return out.copy_(x.reshape(like))


@out_variant(flatten)
def flatten_out(x, *, out, start):
    return out.copy_(x.reshape(out.shape))


@out_variant(reshape)
def reshape_out(x, *, out, shape):
    return out.copy_(x.reshape(out.shape))


@out_variant(slice_)
def slice_out(x, *, out, axis, start, stop=None):
    return out.copy_(slice_.kernel(x, axis=axis, start=start, stop=stop))


@out_variant(slice_dx)
def slice_dx_out(x_shape, dy, *, out, axis, start, stop=None):
    return write_slice(dy, out, axis, start, stop)


@out_variant(transpose)
def transpose_out(x, *, out, axes):
    return out.copy_(x.permute(axes))

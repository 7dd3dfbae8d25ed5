"""Shapes: variants that are written by hand. A view is copied to where it is wanted."""

from oarlock.backend.torch.variants import out_variant
from oarlock.op.shaping import slice_dx, write_slice


@out_variant(slice_dx)
def slice_dx_out(x_shape, dy, *, out, axis, start, stop=None):
    return write_slice(dy, out, axis, start, stop)

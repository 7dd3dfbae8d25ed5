"""Constants: variants that are written by hand. Memory that is there already takes a number, which the kernels would make a tensor of."""

from oarlock.backend.torch.variants import out_variant
from oarlock.op.filling import fill, fill_like, fill_rows


@out_variant(fill)
def fill_out(*, out, shape, value, dtype):
    return out.fill_(value)


@out_variant(fill_like)
def fill_like_out(like, *, out, value, dtype):
    return out.fill_(value)


@out_variant(fill_rows)
def fill_rows_out(like, *, out, axis, shape, value, dtype):
    return out.fill_(value)

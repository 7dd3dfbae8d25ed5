"""Rows by number: variants that are written by hand, since numbers are looked at before."""

from oarlock.backend.torch.variants import out_variant
from oarlock.op.routing import add_rows, put, take, take_rows


@out_variant(take)
def take_out(x, rows, *, out):
    return take_rows(x, rows, out) if rows.dim() == 1 else out.copy_(take.kernel(x, rows))


@out_variant(put)
def put_out(values, rows, like, *, out):
    return add_rows(out.zero_(), values, rows)

"""Element by element: variants that are written by hand."""

import torch

from oarlock.backend.torch.variants import in_place_variant, out_variant
from oarlock.op.elementwise import add_up, sum_


@in_place_variant(sum_, "xs")
def sum_in_place(xs):
    return add_up(xs[0], xs[1:])


@out_variant(sum_)
def sum_out(xs, *, out):
    return add_up(out.copy_(xs[0]) if len(xs) == 1 else torch.add(xs[0], xs[1], out=out), xs[2:])

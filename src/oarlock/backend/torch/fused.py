"""Products that are added to what is there: variants that are written by hand."""

import torch

from oarlock.backend.torch.variants import in_place_variant, lowers_to, out_variant
from oarlock.op.fused import linear_dx_onto, linear_onto
from oarlock.op.matrix import as_rows


@out_variant(linear_onto)
def linear_onto_out(base, x, w, *, out):
    if x.dim() == 2:
        return torch.addmm(base, x, w, out=out)
    torch.addmm(as_rows(base), as_rows(x), w, out=as_rows(out))
    return out


@out_variant(linear_dx_onto)
def linear_dx_onto_out(base, w, given, *, out):
    if given.dim() == 2:
        return torch.addmm(base, given, w.mT, out=out)
    return linear_onto_out(base, given, w.mT, out=out)


@in_place_variant(linear_onto, "base")
def linear_onto_in_place(base, x, w):
    if base.dim() == 2 and base.stride(1) == 1:
        return base.addmm_(x, w)
    rows = as_rows(base)
    if rows.stride(-1) != 1 or rows.data_ptr() != base.data_ptr():  # other products, rounded otherwise; rows that are a copy
        return base.copy_(linear_onto.kernel(base, x, w))
    rows.addmm_(as_rows(x), w)
    return base


@in_place_variant(linear_dx_onto, "base")
def linear_dx_onto_in_place(base, w, given):
    return linear_onto_in_place(base, given, w.mT)


lowers_to(linear_onto, "base.addmm_(x, w)", function=linear_onto_in_place, ranks={"x": 2}, dense="base")
lowers_to(linear_dx_onto, "base.addmm_(given, w.mT)", function=linear_dx_onto_in_place, ranks={"given": 2}, dense="base")

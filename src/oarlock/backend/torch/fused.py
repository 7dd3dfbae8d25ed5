"""Products that are added to what is there: variants that are written by hand, since only some memory can be added to."""

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.fused import linear_dx_onto, linear_onto
from oarlock.tensor.rows import as_rows


@in_place_variant(linear_onto, "base")
def linear_onto_in_place(base, x, w):
    if x.dim() == 2 and base.stride(-1) == 1:
        return base.addmm_(x, w)
    return _add_product(base, x, w)


@in_place_variant(linear_dx_onto, "base")
def linear_dx_onto_in_place(base, w, given):
    if given.dim() == 2 and base.stride(-1) == 1:
        return base.addmm_(given, w.mT)
    return _add_product(base, given, w.mT)


def _add_product(base, x, w):
    rows = as_rows(base)
    if rows.stride(-1) != 1 or rows.data_ptr() != base.data_ptr():  # other products, rounded otherwise; rows that are a copy
        return base.copy_(linear_onto.kernel(base, x, w))
    rows.addmm_(as_rows(x), w)
    return base

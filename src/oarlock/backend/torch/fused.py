"""Products added to existing memory: handwritten variants, as not all memory layouts allow it."""

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.fused import addmm, addmm_nt
from oarlock.tensor.indexing import as_rows


@in_place_variant(addmm, "base")
def addmm_in_place(base, x, w):
    if x.dim() == 2 and base.stride(-1) == 1:
        return base.addmm_(x, w)
    return _add_product(base, x, w)


@in_place_variant(addmm_nt, "base")
def addmm_nt_in_place(base, w, x):
    if x.dim() == 2 and base.stride(-1) == 1:
        return base.addmm_(x, w.mT)
    return _add_product(base, x, w.mT)


def _add_product(base, x, w):
    rows = as_rows(base)
    if (
        rows.stride(-1) != 1 or rows.data_ptr() != base.data_ptr()
    ):  # a different product rounds differently, and a copy would not be updated
        return base.copy_(addmm.kernel(base, x, w))
    rows.addmm_(as_rows(x), w)
    return base

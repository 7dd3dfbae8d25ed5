"""Products of matrices: variants that are written by hand, since rows that stand in more dimensions are written as one matrix."""

import torch

from oarlock.backend.torch.variants import lowers_to, out_variant
from oarlock.op.matrix import as_rows, linear, linear_dbias, linear_dx


def _matrix_of(x: torch.Tensor) -> torch.Tensor | None:
    """The memory of ``x`` as one matrix; None where its rows do not lie at equal distances."""
    try:
        return x.view(x.shape[:-1].numel(), x.shape[-1])
    except RuntimeError:
        return None


@out_variant(linear)
def linear_out(x, w, bias=None, *, out):
    if x.dim() == 2:
        return torch.mm(x, w, out=out) if bias is None else torch.addmm(bias, x, w, out=out)
    rows, out_rows = _matrix_of(x), _matrix_of(out)
    if rows is None or out_rows is None:
        return out.copy_(linear.kernel(x, w, bias))
    linear_out(rows, w, bias, out=out_rows)
    return out


@out_variant(linear_dx)
def linear_dx_out(w, dout, *, out):
    if dout.dim() == 2:
        return torch.mm(dout, w.t(), out=out)
    return linear_out(dout, w.t(), out=out)


lowers_to(linear_dbias, "dout.sum(0)", ranks={"dout": 2})


@out_variant(linear_dbias)
def linear_dbias_out(dout, *, out):
    return torch.sum(as_rows(dout), 0, out=out)


lowers_to(linear_dbias, "torch.sum(dout, 0, out=out)", function=linear_dbias_out, ranks={"dout": 2})

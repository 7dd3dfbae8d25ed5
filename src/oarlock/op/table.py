"""Lookups in a table followed by a matrix product, which is computed once per row of the table if that is less work.

`passes/commute_gather_matmul.py` creates them from `gather` and `linear`; programs do not need to use them. For n row indices and a table
of v rows, the product of the whole table is computed and then looked up if 2 v <= n. The gradients of each row are then summed first. So
rounding depends on the sizes, but is always the same for the same sizes.
"""

import torch

from oarlock.ir.shape_rules import require_numbered
from oarlock.op.indexing import gather, scatter_add
from oarlock.op.matrix import linear, linear_dbias, linear_dw, linear_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects, fused_backward

__all__ = ["embedding_linear"]


@operator(
    "x: float[v k], rows: int64[*b], w: float[k n], bias?: float[n] -> out: float[*b n]",
    linear_in=("x", "w"),
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], rows=[1, 0], w=[[1.0], [10.0]], out=[[43.0], [21.0]]),
        Case(x=[[1.0], [2.0]], rows=[[1, 0], [1, 1]], w=[[10.0]], bias=[5.0], out=[[[25.0], [15.0]], [[25.0], [25.0]]]),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], rows=1, w=[[1.0], [10.0]], out=[43.0]),
        GradCheck(x=(3, 2), rows=[2, 0, 2], w=(2, 4), bias=(4,)),
        GradCheck(x=(3, 2), rows=[[2, 0, 2, 0], [0, 2, 2, 2]], w=(2, 4), bias=(4,)),
        GradCheck(x=(2, 2), rows=[1, 1, 1, 1], w=(2, 3)),
        GradCheck(x=(0, 2), rows=[], w=(2, 3)),
        Rejects("row 3 is out of range: x has 3 rows, numbered from 0", x=(3, 2), rows=[0, 3], w=(2, 4)),
        Rejects("row -1 is out of range: x has 1 row, numbered from 0", x=(1, 2), rows=[0, -1], w=(2, 4)),
        Rejects("2 indexes are given, but x has 0 rows", x=(0, 2), rows=[0, 0], w=(2, 4)),
    ],
)
def embedding_linear(x, rows, w, bias=None):
    """Rows of ``x`` by index, times a shared matrix, plus a shared row: ``out[i] = x[rows[i]] @ w + bias``.

    An index out of range raises KernelError, as in `gather`.
    """
    if _repeats(x.shape[0], rows, x):
        return gather.kernel(linear.kernel(x, w, bias), rows)
    return linear.kernel(gather.kernel(x, rows), w, bias)


def _repeats(count: int, rows: torch.Tensor, like: torch.Tensor) -> bool:
    """Return whether `rows` has at least two indices per row of the table; False in half precision, whose sums are too coarse."""
    return 2 * count <= rows.numel() and like.element_size() >= 4


@embedding_linear.gradient("x", sensitive_to="place")
def embedding_linear_dx(rows, w, x_shape, dout):
    """The gradient of each row that was looked up, through the product."""
    if not _repeats(x_shape[0], rows, dout):
        return scatter_add.kernel(linear_dx.kernel(w, dout), rows, x_shape)
    return _sums_dx(_sums(x_shape[0], rows, dout), w, _untaken(x_shape[0], rows))


@embedding_linear.gradient("w", sensitive_to="place")
def embedding_linear_dw(x, rows, dout):
    if not _repeats(x.shape[0], rows, x):
        return linear_dw.kernel(gather.kernel(x, rows), dout)
    return _sums_dw(_sums(x.shape[0], rows, dout), x, _untaken(x.shape[0], rows))


embedding_linear.gradient_programs(bias=lambda dout: linear_dbias(dout))
embedding_linear.check_shapes(lambda x, rows, w, bias=None: require_numbered(rows.shape, x.shape[0], "x has 0 rows"))


@fused_backward(embedding_linear_dx, embedding_linear_dw, linear_dbias)
def embedding_linear_backward(x, rows, w, dout):
    dx, dw, arriving = _backward(x, rows, w, dout)
    return dx, dw, linear_dbias.kernel(arriving)


@fused_backward(embedding_linear_dx, embedding_linear_dw)
def embedding_linear_backward_without_bias(x, rows, w, dout):
    return _backward(x, rows, w, dout)[:2]


def _backward(x, rows, w, dout):
    """Return the gradients of ``x`` and ``w``, and the rows whose sum is the gradient of the bias."""
    if not _repeats(x.shape[0], rows, x):
        return embedding_linear_dx.kernel(rows, w, x.shape, dout), embedding_linear_dw.kernel(x, rows, dout), dout
    sums, untaken = _sums(x.shape[0], rows, dout), _untaken(x.shape[0], rows)
    return _sums_dx(sums, w, untaken), _sums_dw(sums, x, untaken), sums


def _sums(count: int, rows: torch.Tensor, dout: torch.Tensor) -> torch.Tensor:
    """Return the sum of the gradients of each row of the table."""
    return scatter_add.kernel(dout, rows, (count, dout.shape[-1]))  # type: ignore[return-value]


def _untaken(count: int, rows: torch.Tensor) -> torch.Tensor:
    """Return a mask of rows that were not looked up: an infinity or NaN in them, or in a factor, must not affect the result."""
    return torch.ones(count, 1, dtype=torch.bool, device=rows.device).index_fill_(0, rows.flatten(), False)


def _sums_dx(sums: torch.Tensor, w: torch.Tensor, untaken: torch.Tensor) -> torch.Tensor:
    return torch.mm(sums, w.t()).masked_fill_(untaken, 0.0)


def _sums_dw(sums: torch.Tensor, x: torch.Tensor, untaken: torch.Tensor) -> torch.Tensor:
    return torch.mm(x.masked_fill(untaken, 0.0).t(), sums)


embedding_linear.declare_edges(
    **dict.fromkeys(
        ("infinite", "nan"),
        "the gradients of a row are summed before the product: rows that were not looked up add nothing, and infinities cancel",
    )
)

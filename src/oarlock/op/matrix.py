"""Matrix products, and the inner product of two tensors."""

import torch

from oarlock.ir.var import Var
from oarlock.op.complex_parts import conj, conjugated
from oarlock.op.elementwise import multiply
from oarlock.op.reduction import broadcast_to_like, mean_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck
from oarlock.tensor.indexing import as_rows, rows_times
from oarlock.tensor.products import dot_by_parts

__all__ = ["adjoint", "dot", "linear", "matmul", "matrix_transpose"]


@operator(
    "x: inexact[*b k], w: inexact[k n], bias?: inexact[n] -> out: inexact[*b n]",
    linear_in=("x", "w"),
    contraction=True,
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 2.0]], w=[[3.0], [4.0]], out=[[11.0]]),
        Case(x=[1.0, 2.0], w=[[3.0, 0.0], [4.0, 1.0]], bias=[0.5, -0.5], out=[11.5, 1.5]),
    ],
)
def linear(x, w, bias=None):
    """A linear layer, ``out = x @ w + bias``: rows times a shared matrix, plus a shared row."""
    if x.dim() == 2:
        return torch.mm(x, w) if bias is None else torch.addmm(bias, x, w)
    return rows_times(x, w, bias)


@linear.gradient("x", sensitive_to="place")
def linear_dx(w, dout):
    return torch.mm(dout, w.t()) if dout.dim() == 2 else rows_times(dout, w.t())


@linear.gradient("w", sensitive_to="place")
def linear_dw(x, dout):
    """The sum of ``x' dout`` over all rows, so that the products of a loop's steps may become one."""
    return torch.mm(x.t(), dout) if x.dim() == 2 and dout.dim() == 2 else torch.mm(as_rows(x).t(), as_rows(dout))


linear.complex_gradient_programs(
    x=lambda w, dout: linear_dx(conj(w), dout),
    w=lambda x, dout: linear_dw(conj(x), dout),
)


@linear.gradient("bias")
def linear_dbias(dout):
    return torch.sum(as_rows(dout), 0)


linear_dbias.gradient_programs(dout=lambda dout_shape, ddbias: broadcast_to_like(ddbias, dout_shape))


@operator(
    "x: T[*b m n] -> y: T[*b n m]",
    aliases=("x",),
    contraction=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], y=[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]),
        Case(x=[[[1, 2]], [[3, 4]]], y=[[[1], [2]], [[3], [4]]]),
    ],
)
def matrix_transpose(x):
    """The transpose of each matrix: swaps the last two dimensions. It is a view of ``x``; ``transpose`` copies."""
    return x.mT


matrix_transpose.gradient_programs(x=lambda dy: matrix_transpose(dy))


def adjoint(x: Var) -> Var:
    """Return the conjugate transpose of matrices, which for real numbers is the transpose."""
    return matrix_transpose(conjugated(x))


@operator(
    "x: inexact[*~b m k], y: inexact[*~b k n] -> z: inexact[*b m n]",
    linear_in=("x", "y"),
    contraction=True,
    sensitive_to="place",
    cases=[Case(x=[[[1.0, 2.0]]], y=[[[3.0], [4.0]]], z=[[[11.0]]])],
)
def matmul(x, y):
    """The matrix product for each leading index: ``z[b] = x[b] @ y[b]``."""
    return torch.bmm(x, y) if x.dim() == 3 else torch.matmul(x, y)


@matmul.gradient("x", sensitive_to="place")
def matmul_dx(y, dz):
    return torch.bmm(dz, y.mT) if dz.dim() == 3 else torch.matmul(dz, y.mT)


@matmul.gradient("y", sensitive_to="place")
def matmul_dy(x, dz):
    return torch.bmm(x.mT, dz) if dz.dim() == 3 else torch.matmul(x.mT, dz)


matmul.complex_gradient_programs(
    x=lambda y, dz: matmul_dx(conj(y), dz),
    y=lambda x, dz: matmul_dy(conj(x), dz),
)


@operator(
    "x: inexact[...s], y: inexact[...s] -> z: inexact[]",
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=[[1.0, 0.0], [-1.0, 2.0]], z=6.0),
        Case(x=[1.0, 2.0], y=[1.0, 2.0], mean=True, z=2.5),
        Case(x=[], y=[], z=0.0),
        GradCheck(),
        GradCheck(mean=True),
    ],
)
def dot(x, y, *, mean: bool = False):
    """The sum of ``x * y`` over all elements, or the ``mean``. Nothing is conjugated: see `vecdot`."""
    count = x.numel()
    if not x.is_cpu or x.element_size() < 4:
        products = x * y
        return torch.mean(products) if mean else torch.sum(products)
    total = dot_by_parts(x, y)
    return total.div_(count) if mean else total


dot.gradient_programs(
    x=lambda y, dz, *, mean: multiply(mean_dx(dz, y, keepdim=False) if mean else broadcast_to_like(dz, y), conjugated(y)),
    y=lambda x, dz, *, mean: multiply(mean_dx(dz, x, keepdim=False) if mean else broadcast_to_like(dz, x), conjugated(x)),
)

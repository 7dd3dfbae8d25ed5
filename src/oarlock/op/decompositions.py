"""Matrix decompositions: QR, singular values, eigenvalues of symmetric matrices, LU. Half precision is computed in float32.

Gradients divide by differences of singular values or eigenvalues: if some are equal, gradients of the vectors are infinite or NaN, as in
PyTorch; gradients of the values alone are not affected.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.order import eye
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.linear_systems import inverse
from oarlock.op.manipulation import concat, slice_, split
from oarlock.op.matrix import adjoint, matmul, matrix_transpose
from oarlock.op.rearrangement import tril, triu
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import square
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import at_least_single

__all__ = ["eigh", "lu", "matrix_exp", "pinv", "qr", "svd"]

_SQUARE = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.5], [-0.5, 1.0, 3.0]]
_TALL = [[1.0, 0.5], [-0.25, 2.0], [0.75, 1.0]]
_WIDE = [[1.0, -0.25, 0.75], [0.5, 2.0, 1.0]]


def _sizes(x, what: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of each matrix. Raises ShapeError if they are symbols."""
    rows, columns = x.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ShapeError(f"{what} needs known numbers of rows and columns, not {rows} and {columns}")
    return rows, columns


def _symmetric(x):
    return multiply(add(x, matrix_transpose(x)), 0.5)


@operator(
    "x: float[*b m n] -> q: float[*b m k], r: float[*b k n]",
    sensitive_to="place",
    cases=[
        Case(x=[[0.0, 2.0], [3.0, 1.0]], q=[[0.0, -1.0], [-1.0, 0.0]], r=[[-3.0, -1.0], [0.0, -2.0]]),
        GradCheck(x=[_SQUARE]),
        GradCheck(x=_TALL),
        GradCheck(x=_WIDE),
        GradCheck(x=(0, 2, 2)),
    ],
)
def qr(x):
    """The reduced QR decomposition of each matrix, ``x = q r``: k = min(m, n) orthonormal columns ``q``, and ``r`` upper triangular.

    The gradient requires the first k columns of ``x`` to be linearly independent.
    """
    q, r = torch.linalg.qr(at_least_single(x))
    return q.to(x.dtype), r.to(x.dtype)


@qr.infer_shape
def qr_shapes(x):
    rows, columns = _sizes(x, "qr")
    front, count = x.shape[:-2], min(rows, columns)
    return (*front, rows, count), (*front, count, columns)


@qr.gradient_program("x")
def qr_dx(x, q, r, dq=None, dr=None):
    """``(dq + q C) inv(r)'``, where ``C`` is the lower triangle of ``r dr' - dq' q``, mirrored (Walter and Lehmann, 2010).

    For a wide matrix, the columns of ``r`` after the first m depend on the first columns of ``x`` only through ``q``.
    """
    rows, columns = _sizes(x, "qr")
    if columns <= rows:
        return _square_qr(q, r, dq, dr)
    behind = None
    if dr is not None:
        dr, dr_behind = slice_(dr, axis=-1, stop=rows), slice_(dr, axis=-1, start=rows)
        behind = matmul(q, dr_behind)
        through = matmul(slice_(x, axis=-1, start=rows), matrix_transpose(dr_behind))
        dq = through if dq is None else add(dq, through)
    front = _square_qr(q, slice_(r, axis=-1, stop=rows), dq, dr)
    return concat([front, multiply(slice_(x, axis=-1, start=rows), 0.0) if behind is None else behind], axis=-1)


def _square_qr(q, r, dq, dr):
    mixed = None if dr is None else matmul(r, matrix_transpose(dr))
    if dq is not None:
        turned = matmul(matrix_transpose(dq), q)
        mixed = neg(turned) if mixed is None else subtract(mixed, turned)
    mirrored = add(tril(mixed), matrix_transpose(tril(mixed, diagonal=-1)))
    left = matmul(q, mirrored)
    return matmul(left if dq is None else add(dq, left), matrix_transpose(inverse(r)))


@operator(
    "x: float[*b m n] -> u: float[*b m k], s: float[*b k], v: float[*b k n]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[0.0, 2.0], [0.0, 0.0], [-3.0, 0.0]], u=[[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]], s=[3.0, 2.0], v=[[-1.0, 0.0], [0.0, 1.0]]),
        GradCheck(x=[_SQUARE]),
        GradCheck(x=_TALL),
        GradCheck(x=_WIDE),
        GradCheck(x=(0, 2, 2)),
        Rejects("no singular values", x=[[float("nan"), 1.0], [0.0, 1.0]]),
    ],
)
def svd(x):
    """The singular value decomposition of each matrix, ``x = u diag(s) v``, with min(m, n) singular values ``s``, descending.

    Columns of ``u`` and rows of ``v`` are orthonormal; in each column of ``u`` the element of largest magnitude is positive. NaN and
    infinite values raise an error when the program runs.
    """
    _require_finite(x, "no singular values")
    u, s, v = torch.linalg.svd(at_least_single(x), full_matrices=False)
    signs = _signs(u)
    return (u * signs).to(x.dtype), s.to(x.dtype), (v * signs.mT).to(x.dtype)


def _signs(vectors: torch.Tensor) -> torch.Tensor:
    """Return the sign of the largest element of each column, [*b 1 k]. The sign that LAPACK chooses depends on its algorithm."""
    if not vectors.shape[-2]:
        return vectors.new_ones((*vectors.shape[:-2], 1, vectors.shape[-1]))
    largest = vectors.abs().argmax(-2, keepdim=True)
    return torch.where(vectors.detach().gather(-2, largest) < 0, -1.0, 1.0).to(vectors.dtype)


def _require_finite(x: torch.Tensor, fault: str) -> None:
    """Raise ValueError if an element is NaN or infinite: LAPACK may not terminate for these."""
    if not torch.isfinite(x).all():
        raise ValueError(f"a matrix with NaN or infinity has {fault}")


@svd.infer_shape
def svd_shapes(x):
    rows, columns = _sizes(x, "svd")
    front, count = x.shape[:-2], min(rows, columns)
    return (*front, rows, count), (*front, count), (*front, count, columns)


@svd.gradient_program("x")
def svd_dx(x, u, s, v, du=None, ds=None, dv=None):
    """``u (A S + S B + diag(ds)) v`` plus the parts orthogonal to ``u`` and ``v``; ``A`` and ``B`` are the skew parts of ``u' du`` and
    ``v dv'``, divided by ``s_j**2 - s_i**2``.
    """
    rows, columns = _sizes(x, "svd")
    count = min(rows, columns)
    unit = eye(rows=count, dtype=x.dtype)
    gaps = subtract(unsqueeze(square(s), -2), unsqueeze(square(s), -1))  # [*b k k]
    gaps = where(equal(unit, 1.0), 1.0, gaps)
    inner = None if ds is None else multiply(unsqueeze(ds, -1), unit)
    outside = None
    if du is not None:
        turned = matmul(matrix_transpose(u), du)
        inner = _sum(inner, multiply(divide(subtract(turned, matrix_transpose(turned)), gaps), unsqueeze(s, -2)))
        if rows > columns:
            outside = matmul(divide(subtract(du, matmul(u, turned)), unsqueeze(s, -2)), v)
    if dv is not None:
        turned = matmul(v, matrix_transpose(dv))
        inner = _sum(inner, multiply(divide(subtract(turned, matrix_transpose(turned)), gaps), unsqueeze(s, -1)))
        if columns > rows:
            across = divide(subtract(dv, matmul(matrix_transpose(turned), v)), unsqueeze(s, -1))
            outside = _sum(outside, matmul(u, across))
    return _sum(outside, matmul(u, matmul(inner, v)))


def _sum(x, y):
    return y if x is None else add(x, y)


@operator(
    "x: float[*b m m] -> values: float[*b m], vectors: float[*b m m]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[3.0, 0.0], [0.0, -1.0]], values=[-1.0, 3.0], vectors=[[0.0, 1.0], [1.0, 0.0]]),
        GradCheck(x=[[[2.0, 0.5, -1.0], [0.5, 1.5, 0.25], [-1.0, 0.25, 3.0]], _SQUARE]),
        GradCheck(x=_SQUARE),
        Rejects("no eigenvalues", x=[[float("inf"), 1.0], [1.0, 1.0]]),
    ],
)
def eigh(x):
    """The eigenvalues, ascending, and the eigenvectors, as columns, of the symmetric part ``(x + x') / 2`` of each matrix.

    Eigenvectors are orthonormal; in each the element of largest magnitude is positive. NaN and infinite values raise an error when the
    program runs.
    """
    _require_finite(x, "no eigenvalues")
    wide = at_least_single(x)
    values, vectors = torch.linalg.eigh((wide + wide.mT) / 2)
    return values.to(x.dtype), (vectors * _signs(vectors)).to(x.dtype)


@eigh.gradient_program("x")
def eigh_dx(values, vectors, dvalues=None, dvectors=None):
    """The symmetric part of ``v (diag(dvalues) + A) v'``, with ``A = v' dvectors`` divided by differences of eigenvalues."""
    own = equal(tril(triu(add(multiply(vectors, 0.0), 1.0))), 1.0)  # the identity, of any size
    inner = None if dvalues is None else where(own, unsqueeze(dvalues, -1), 0.0)
    if dvectors is not None:
        gaps = where(own, 1.0, subtract(unsqueeze(values, -2), unsqueeze(values, -1)))
        turned = divide(matmul(matrix_transpose(vectors), dvectors), gaps)
        inner = _sum(inner, where(own, 0.0, turned))
    return _symmetric(matmul(vectors, matmul(inner, matrix_transpose(vectors))))


@operator(
    "x: inexact[*b m m] -> p: inexact[*b m m], l: inexact[*b m m], u: inexact[*b m m]",
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 2.0], [2.0, 1.0]], p=[[0.0, 1.0], [1.0, 0.0]], l=[[1.0, 0.0], [0.5, 1.0]], u=[[2.0, 1.0], [0.0, 1.5]]),
        GradCheck(x=[_SQUARE, [[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [3.0, 0.5, 0.25]]]),
        GradCheck(x=(0, 2, 2)),
    ],
)
def lu(x):
    """The LU decomposition of each square matrix, ``x = p l u``: a permutation, a unit lower and an upper triangular matrix.

    The gradient raises an error for a singular matrix, when the program runs.
    """
    return tuple(part.to(x.dtype) for part in torch.linalg.lu(at_least_single(x)))


@lu.gradient_program("x")
def lu_dx(p, l, u, dl=None, du=None, dp=None):  # noqa: E741
    """``p inv(l)' (L + U) inv(u)'``, where ``L`` is ``l' dl`` below its diagonal and ``U`` the upper triangle of ``du u'``."""
    inner = None if dl is None else tril(matmul(adjoint(l), dl), diagonal=-1)
    if du is not None:
        inner = _sum(inner, triu(matmul(du, adjoint(u))))
    if inner is None:
        return multiply(p, 0.0)  # the permutation is constant
    right = matmul(inner, adjoint(inverse(u)))
    return matmul(p, matmul(adjoint(inverse(l)), right))


@operator(
    "x: inexact[*b m n] -> y: inexact[*b n m]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]], y=[[0.5, 0.0, 0.0], [0.0, 0.25, 0.0]]),
        Case(x=[[1.0, 0.0], [0.0, 0.0]], y=[[1.0, 0.0], [0.0, 0.0]]),
        GradCheck(x=[_SQUARE, [[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [3.0, 0.5, 0.25]]]),
        GradCheck(x=_TALL),
        GradCheck(x=_WIDE),
        Rejects("no singular values", x=[[float("nan"), 1.0], [0.0, 1.0]]),
    ],
)
def pinv(x, *, relative: float | None = None):
    """The Moore-Penrose pseudo-inverse of each matrix, of singular values above ``relative`` times the largest (Moore, 1920; Penrose,
    1955).

    ``relative`` defaults to max(m, n) times the machine epsilon of the dtype. NaN and infinite values raise an error when the program runs.
    """
    _require_finite(x, "no singular values")
    return torch.linalg.pinv(at_least_single(x), rtol=relative).to(x.dtype)


@pinv.gradient_program("x")
def pinv_dx(x, y, dy, *, relative=None):
    """``-y' dy y' + (1 - x y) dy' y y' + y' y dy' (1 - y x)`` if the rank is locally constant (Golub and Pereyra, 1973)."""
    turned, back = adjoint(y), adjoint(dy)
    direct = neg(matmul(turned, matmul(dy, turned)))
    of_rows = matmul(back, matmul(y, turned))  # [*b m n]
    of_columns = matmul(turned, matmul(y, back))
    rows = subtract(of_rows, matmul(x, matmul(y, of_rows)))
    columns = subtract(of_columns, matmul(of_columns, matmul(y, x)))
    return add(direct, add(rows, columns))


@operator(
    "x: inexact[*b m m] -> y: inexact[*b m m]",
    sensitive_to="place",
    cases=[
        Case(x=[[0.0, 1.0], [0.0, 0.0]], y=[[1.0, 1.0], [0.0, 1.0]]),
        Case(x=[[[1.0]], [[0.0]]], y=[[[2.718281828459045]], [[1.0]]]),
        GradCheck(x=(2, 3, 3)),
        GradCheck(x=(2, 2)),
        GradCheck(x=(0, 2, 2)),
    ],
)
def matrix_exp(x):
    """The matrix exponential of each matrix, ``1 + x + x x / 2 + x x x / 6 + ...``."""
    return torch.linalg.matrix_exp(at_least_single(x)).to(x.dtype)


@matrix_exp.gradient_program("x")
def matrix_exp_dx(x, dy):
    """The upper right block of the exponential of ``[[x', dy], [0, x']]`` (Mathias, 1996)."""
    turned = adjoint(x)
    upper = concat([turned, dy], axis=-1)
    lower = concat([multiply(dy, 0.0), turned], axis=-1)
    whole = matrix_exp(concat([upper, lower], axis=-2))
    return split(split(whole, sections=2, axis=-1)[1], sections=2, axis=-2)[0]


_NOT_UNIQUE = (
    "vectors of equal values are not unique, and neither are their gradients: they may be huge, infinite or NaN, here and in PyTorch"
)
eigh.declare_edges(equal=_NOT_UNIQUE)
_NOT_FINITE = "a matrix with NaN or infinity raises KernelError; PyTorch may return NaN"
svd.declare_edges(equal=_NOT_UNIQUE, refused=_NOT_FINITE)
pinv.declare_edges(refused=_NOT_FINITE)
_BY_INVERSE = "the gradient needs an inverse, and raises KernelError for a singular matrix; PyTorch's is NaN or infinite"
_ALL_OF_IT = "one infinity or NaN makes the whole gradient NaN; PyTorch leaves out rows or columns"
qr.declare_edges(
    refused=_BY_INVERSE,
    infinite=_ALL_OF_IT,
    nan=_ALL_OF_IT,
    denormal="NaN if a norm is denormal; PyTorch's is partly infinite",
)
lu.declare_edges(refused=_BY_INVERSE, infinite=_ALL_OF_IT)

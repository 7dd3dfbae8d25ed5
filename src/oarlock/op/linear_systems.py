"""Linear systems: inverses, solutions, Cholesky factors, determinants. Half precision is computed in float32.

A singular matrix raises KernelError, with a message in terms of the program, instead of returning infinities or NaN.
"""

import torch

from oarlock.op.complex_parts import conjugated
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.elementwise import add, multiply, neg, subtract
from oarlock.op.matrix import adjoint, matmul, matrix_transpose
from oarlock.op.rearrangement import tril, triu
from oarlock.op.reduction import reduce_sum
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import at_least_single

__all__ = ["cholesky", "cofactors", "det", "inverse", "slogdet", "solve_columns", "solve_triangular_columns"]

_REGULAR = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.5], [-0.5, 1.0, 3.0]]
_SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
_POSITIVE = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]]
_COMPLEX = [[2.0 + 1.0j, 0.5j, -1.0 + 0.0j], [0.25 + 0.0j, 1.5 - 0.5j, 0.5 + 0.25j], [-0.5j, 1.0 + 0.0j, 3.0 + 0.0j]]
_LOWER = [[2.0, 0.0, 0.0], [0.5, -1.5, 0.0], [-1.0, 0.75, 1.0]]


def _require_regular(info: torch.Tensor, name: str, fault: str) -> None:
    """Raise ValueError, with the index of the matrix, if LAPACK reports a fault."""
    if info.any():
        where = info.nonzero()[0].tolist()
        raise ValueError(f"{name}{where if where else ''} {fault}")


@operator(
    "x: inexact[*b m m] -> y: inexact[*b m m]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[2.0, 1.0], [0.0, 4.0]], y=[[0.5, -0.125], [0.0, 0.25]]),
        Case(x=[[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 0.5]]], y=[[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.0], [0.0, 2.0]]]),
        GradCheck(x=[_REGULAR, _POSITIVE]),
        GradCheck(x=(0, 2, 2)),
        GradCheck(x=_COMPLEX),
        Rejects("x has no inverse", x=_SINGULAR),
        Rejects("x[1] has no inverse", x=[[[1.0, 0.0], [0.0, 1.0]], _SINGULAR]),
    ],
)
def inverse(x):
    """The inverse of each matrix. A singular matrix raises KernelError."""
    y, info = torch.linalg.inv_ex(at_least_single(x))
    _require_regular(info, "x", "has no inverse")
    return y.to(x.dtype)


inverse.gradient_programs(x=lambda y, dy: neg(matmul(adjoint(y), matmul(dy, adjoint(y)))))


@operator(
    "a: inexact[*b m m], b: inexact[*b m k] -> x: inexact[*b m k]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(a=[[2.0, 1.0], [0.0, 4.0]], b=[[3.0], [4.0]], x=[[1.0], [1.0]]),
        GradCheck(a=[_REGULAR, _POSITIVE], b=(2, 3, 2)),
        GradCheck(a=_REGULAR, b=(3, 1)),
        GradCheck(a=(0, 2, 2), b=(0, 2, 1)),
        GradCheck(a=_COMPLEX, b=[[1.0 + 1.0j], [2.0j], [0.5 + 0.0j]]),
        Rejects("a has no inverse", a=_SINGULAR, b=(2, 1)),
    ],
)
def solve_columns(a, b):
    """The solution ``x`` of ``a x = b``, for each column of ``b``. A singular matrix raises KernelError."""
    x, info = torch.linalg.solve_ex(at_least_single(a), at_least_single(b))
    _require_regular(info, "a", "has no inverse")
    return x.to(a.dtype)


solve_columns.gradient_programs(
    a=lambda a, x, dx: neg(matmul(solve_columns(adjoint(a), dx), adjoint(x))),
    b=lambda a, dx: solve_columns(adjoint(a), dx),
)


@operator(
    "a: inexact[*b m m], b: inexact[*b m k] -> x: inexact[*b m k]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(a=[[2.0, 9.0], [1.0, 4.0]], b=[[2.0], [9.0]], x=[[1.0], [2.0]]),
        Case(a=[[2.0, 1.0], [9.0, 4.0]], b=[[4.0], [8.0]], upper=True, x=[[1.0], [2.0]]),
        Case(a=[[0.0, 9.0], [1.0, 4.0]], b=[[2.0], [9.0]], unitriangular=True, x=[[2.0], [7.0]]),
        GradCheck(a=[_LOWER, _POSITIVE], b=(2, 3, 2)),
        GradCheck(a=_POSITIVE, b=(3, 1), upper=True),
        GradCheck(a=_POSITIVE, b=(3, 2), unitriangular=True),
        GradCheck(a=(0, 2, 2), b=(0, 2, 1)),
        Rejects("a has a 0 on its diagonal", a=[[1.0, 0.0], [3.0, 0.0]], b=(2, 1)),
    ],
)
def solve_triangular_columns(a, b, *, upper: bool = False, unitriangular: bool = False):
    """The solution ``x`` of ``a x = b`` for a triangular ``a``: only its lower triangle is read, or its upper one if ``upper``.

    If ``unitriangular``, the diagonal is taken to be ones; otherwise a 0 on the diagonal raises KernelError.
    """
    if not unitriangular:
        _require_regular((a.diagonal(dim1=-2, dim2=-1) == 0).any(-1), "a", "has a 0 on its diagonal")
    x = torch.linalg.solve_triangular(at_least_single(a), at_least_single(b), upper=upper, unitriangular=unitriangular)
    return x.to(a.dtype)


def _other_side(a, dx, upper: bool, unitriangular: bool):
    return solve_triangular_columns(adjoint(a), dx, upper=not upper, unitriangular=unitriangular)


@solve_triangular_columns.gradient_program("a")
def solve_triangular_columns_da(a, x, dx, *, upper, unitriangular):
    """The gradient of `solve_columns`, restricted to the triangle."""
    full = neg(matmul(_other_side(a, dx, upper, unitriangular), adjoint(x)))
    return triu(full, diagonal=int(unitriangular)) if upper else tril(full, diagonal=-int(unitriangular))


solve_triangular_columns.gradient_programs(b=lambda a, dx, *, upper, unitriangular: _other_side(a, dx, upper, unitriangular))


@operator(
    "x: inexact[*b m m] -> y: inexact[*b m m]",
    sensitive_to="place",
    checks_values=True,
    cases=[
        Case(x=[[4.0, 2.0], [2.0, 5.0]], y=[[2.0, 0.0], [1.0, 2.0]]),
        Case(x=[[[9.0]]], y=[[[3.0]]]),
        GradCheck(x=[_POSITIVE, [[2.0, 0.0, 0.5], [0.0, 1.0, 0.25], [0.5, 0.25, 3.0]]]),
        GradCheck(x=[[4.0, 1.0], [0.5, 2.0]]),
        GradCheck(x=[[4.0 + 0.0j, 1.0 + 1.0j], [0.5 - 0.5j, 2.0 + 0.0j]]),
        GradCheck(x=(0, 2, 2)),
        Rejects("x is not positive definite", x=[[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def cholesky(x):
    """The Cholesky factor of the symmetric part of each matrix: lower triangular, with ``y y' = (x + x') / 2`` and a positive diagonal.

    For complex numbers, ``'`` is the conjugate transpose. A matrix that is not positive definite raises KernelError.
    """
    wide = at_least_single(x)
    y, info = torch.linalg.cholesky_ex((wide + wide.mH) / 2)
    _require_regular(info, "x", "is not positive definite")
    return y.to(x.dtype)


@cholesky.gradient_program("x")
def cholesky_dx(y, dy):
    """The symmetric part of ``inv(y)' P inv(y)``, with ``P`` the lower triangle of ``y' dy``, its diagonal halved (Murray, 2016)."""
    product = matmul(adjoint(y), dy)
    half = subtract(tril(product), multiply(subtract(tril(product), tril(product, diagonal=-1)), 0.5))
    left = solve_triangular_columns(adjoint(y), half, upper=True)
    full = adjoint(solve_triangular_columns(adjoint(y), adjoint(left), upper=True))
    return multiply(add(full, adjoint(full)), 0.5)


@operator(
    "x: float[*b m m] -> sign: float[*b], log: float[*b]",
    sensitive_to="place",
    cases=[
        Case(x=[[0.0, 2.0], [3.0, 0.0]], sign=-1.0, log=1.791759469228055),
        Case(x=[_SINGULAR, [[1.0, 0.0], [0.0, 1.0]]], sign=[0.0, 1.0], log=[float("-inf"), 0.0]),
        GradCheck(x=[_REGULAR, _POSITIVE]),
        GradCheck(x=[[-1.0]]),
        GradCheck(x=(0, 2, 2)),
    ],
)
def slogdet(x):
    """The sign of the determinant of each matrix and the logarithm of its magnitude; 0 and minus infinity for a singular matrix.

    The gradient raises KernelError for a singular matrix.
    """
    sign, log = torch.linalg.slogdet(at_least_single(x))
    return sign.to(x.dtype), log.to(x.dtype)


slogdet.gradient_programs(x=lambda x, dlog, dsign=None: multiply(matrix_transpose(inverse(x)), unsqueeze(dlog, -1, -1)))


@operator(
    "x: inexact[*b m m] -> y: inexact[*b]",
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=-2.0),
        Case(x=[_SINGULAR, [[2.0, 0.0], [0.0, 3.0]]], y=[0.0, 6.0]),
        GradCheck(x=[_REGULAR, _POSITIVE]),
        GradCheck(x=(0, 2, 2)),
    ],
)
def det(x):
    """The determinant of each matrix. It has a gradient for singular matrices, too."""
    return torch.linalg.det(at_least_single(x)).to(x.dtype)


det.gradient_programs(x=lambda x, dy: multiply(conjugated(cofactors(x)), unsqueeze(dy, -1, -1)))


@operator(
    "x: inexact[*b m m] -> y: inexact[*b m m]",
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=[[4.0, -3.0], [-2.0, 1.0]]),
        Case(x=_SINGULAR, y=[[4.0, -2.0], [-2.0, 1.0]]),
        Case(x=[[[0.0]]], y=[[[1.0]]]),
        GradCheck(x=[_REGULAR, _POSITIVE]),
        GradCheck(x=(0, 2, 2)),
    ],
)
def cofactors(x):
    """The cofactors of each matrix: the gradient of its determinant.

    They are computed from the singular values, so that they exist for singular matrices; their gradient uses the inverse.
    """
    wide = at_least_single(x)
    known = torch.isfinite(wide).all(-1, keepdim=True).all(-2, keepdim=True)  # LAPACK may not terminate for others
    u, s, v = torch.linalg.svd(torch.where(known, wide, 0.0))
    count = s.shape[-1]
    others = torch.where(torch.eye(count, dtype=torch.bool, device=s.device), 1.0, s.unsqueeze(-2)).prod(-1)
    sign = torch.linalg.det(u) * torch.linalg.det(v)
    found = u.conj() @ (others.unsqueeze(-1) * v.conj()) * sign.unsqueeze(-1).unsqueeze(-1)
    return torch.where(known, found, torch.nan).to(x.dtype)


@cofactors.gradient_program("x")
def cofactors_dx(x, y, dy):
    """``sum(dy y) inv(x)' - y dy' inv(x)'``."""
    transposed, y = adjoint(inverse(x)), conjugated(y)
    along = reduce_sum(multiply(dy, y), axis=(-2, -1), keepdim=True)
    return subtract(multiply(along, transposed), matmul(y, matmul(matrix_transpose(dy), transposed)))


_BY_INVERSE = "the gradient needs the inverse, and raises KernelError for a singular matrix; PyTorch's is NaN or infinite"
_OF_INFINITIES = "sums of products over the whole matrix: one infinity makes all of them NaN; PyTorch solves row by row"
cofactors.declare_edges(refused=_BY_INVERSE, infinite=_OF_INFINITIES, nan=_OF_INFINITIES)
det.declare_edges(denormal="by cofactors, which are 0; PyTorch divides by pivots, which gives NaN", infinite=_OF_INFINITIES)
slogdet.declare_edges(refused=_BY_INVERSE, infinite=_OF_INFINITIES, nan=_OF_INFINITIES)
solve_columns.declare_edges(
    infinite=_OF_INFINITIES, denormal="a quotient by a pivot that is a denormal number overflows at another step than PyTorch's"
)

"""Linear algebra: systems, decompositions, determinants, norms of matrices."""

import math

from database_judge import Unmapped

from oarlock import op
from oarlock.op.matrix import adjoint

__all__ = ["CALLS"]


def cholesky(x, *, upper=False):
    y = op.cholesky(x)
    return adjoint(y) if upper else y


def cholesky_solve(b, y, upper=False):
    return op.cholesky_solve(b, op.triu(y) if upper else op.tril(y), upper=upper)


def svd(x, full_matrices=True, some=True, compute_uv=True, driver=None):
    rows, columns = x.shape[-2:]
    if full_matrices and rows != columns:
        raise Unmapped("vectors of singular values that are not there")
    return op.svd(x)


def qr(x, mode="reduced"):
    if mode == "r" or (mode == "complete" and x.shape[-2] > x.shape[-1]):
        raise Unmapped("columns that complete a basis")
    return op.qr(x)


def matrix_norm(x, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    if dtype is not None:
        raise Unmapped("sums in another dtype")
    return op.matrix_norm(x, order=ord if isinstance(ord, str) else float(ord), axes=tuple(dim), keepdim=keepdim)


def norm(x, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A norm of vectors, or of matrices if two axes and an order are given."""
    if dtype is not None:
        raise Unmapped("sums in another dtype")
    axes = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if ord is None or (axes is not None and len(axes) == 1) or (axes is None and len(x.shape) == 1):
        return op.vector_norm(x, order=2.0 if ord is None else float(ord), axis=axes, keepdim=keepdim)
    return matrix_norm(x, ord, (0, 1) if axes is None else axes, keepdim)


def nuclear(x, p="nuc", dim=None, keepdim=False, dtype=None):
    return op.nuclear_norm(x, axes=(-2, -1) if dim is None else tuple(dim), keepdim=keepdim)


def cond(x, p=None):
    if p in (None, 2, -2):
        values = op.svdvals(x)
        largest, smallest = op.amax(values, axis=-1), op.amin(values, axis=-1)
        return smallest / largest if p == -2 else largest / smallest
    return matrix_norm(x, p) * matrix_norm(op.inverse(x), p)


def pinv(x, *, atol=None, rtol=None, rcond=None, hermitian=False):
    relative = rtol if rcond is None else rcond
    if atol is not None or hermitian or not isinstance(relative, float | int | None):
        raise Unmapped("a bound that is absolute, or a tensor")
    return op.pinv(x, relative=None if relative is None else float(relative))


def logdet(x):
    sign, log = op.slogdet(x)
    return op.where(sign < 0.0, op.full_like(log, value=math.nan, dtype=log.dtype), log)


def solve_triangular(a, b, *, upper, left=True, unitriangular=False):
    return op.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


def triangular_solve(b, a, upper=True, transpose=False, unitriangular=False):
    x = op.solve_triangular(op.matrix_transpose(a) if transpose else a, b, upper=upper != transpose, unitriangular=unitriangular)
    return x, op.assign(a)


CALLS = {
    "cholesky": lambda x, upper=False: cholesky(x, upper=upper),
    "cholesky_inverse": lambda y, upper=False: op.cholesky_solve(op.eye(rows=y.shape[-1], dtype=y.dtype), y, upper=upper),
    "cholesky_solve": cholesky_solve,
    "linalg.cholesky": cholesky,
    "linalg.cond": cond,
    "linalg.det": op.det,
    "linalg.eigh": lambda x, UPLO="L": op.eigh(x),  # noqa: N803
    "linalg.eigvalsh": lambda x, UPLO="L": op.eigvalsh(x),  # noqa: N803
    "linalg.inv": op.inverse,
    "linalg.matrix_norm": matrix_norm,
    "linalg.matrix_power": lambda x, n: op.matrix_power(x, n),
    "linalg.norm": norm,
    "linalg.norm.subgradients_at_zero": norm,
    "linalg.pinv": pinv,
    "linalg.qr": qr,
    "linalg.slogdet": op.slogdet,
    "linalg.solve": lambda a, b, *, left=True: op.solve(a, b, left=left),
    "linalg.solve_triangular": solve_triangular,
    "linalg.svd": svd,
    "linalg.svdvals": lambda x, *, driver=None: op.svdvals(x),
    "logdet": logdet,
    "matrix_exp": op.matrix_exp,
    "norm.nuc": nuclear,
    "pinverse": pinv,
    "qr": lambda x, some=True: qr(x, "reduced" if some else "complete"),
    "svd": lambda x, some=True, compute_uv=True: svd(x, full_matrices=not some),
    "triangular_solve": triangular_solve,
}
"""From PyTorch's name to the call."""

"""Linear algebra on stacks of matrices, named as in `torch.linalg`: systems, powers, norms, singular values and eigenvalues."""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.norms import vector_norm
from oarlock.op.composed.order import eye
from oarlock.op.composed.shape import broadcast_together, known_shape, squeeze, unsqueeze
from oarlock.op.decompositions import eigh, pinv, svd
from oarlock.op.extremes import amax, amin
from oarlock.op.linear_systems import inverse, solve_columns, solve_triangular_columns
from oarlock.op.magnitude import abs_
from oarlock.op.manipulation import transpose
from oarlock.op.matrix import adjoint, matmul, matrix_transpose
from oarlock.op.reduction import reduce_sum
from oarlock.op.told_shape import broadcast_to
from oarlock.registry.creator import require_type

__all__ = [
    "cholesky_solve",
    "eigvalsh",
    "lstsq",
    "matrix_norm",
    "matrix_power",
    "nuclear_norm",
    "solve",
    "solve_triangular",
    "svdvals",
]


def _matrices(x: Var, what: str) -> Shape:
    """Return the shape of a stack of matrices. Raises ShapeError."""
    shape = known_shape(require_type(x, what), what)
    if len(shape) < 2:
        raise ShapeError(f'{what}: "{x.name}" is not a matrix or a stack of matrices', location=here(), given=[x.describe()])
    return shape


def solve(a: Var, b: Var, *, left: bool = True) -> Var:
    """The solution ``x`` of ``a x = b``, or of ``x a = b`` if not `left`: float[...b m m], with float[...b m k], or a vector, float[m].

    Leading axes are broadcast. If ``a`` is a stack of matrices, ``b`` may be a stack of as many vectors, float[...b m]. A singular matrix
    raises KernelError when the program runs. Raises ShapeError.
    """
    with undone_on_error(require_type(a, "solve: a").block.program):
        front, of_b = _matrices(a, "solve: a")[:-2], known_shape(require_type(b, "solve: b"), "solve: b")
        vectors = len(of_b) == 1 or (len(of_b) == len(front) + 1 and of_b == (*front, _matrices(a, "solve: a")[-1]))
        columns = unsqueeze(b, -1) if vectors else b
        if not left and not vectors:
            return matrix_transpose(solve(matrix_transpose(a), matrix_transpose(b)))
        x = solve_columns(*broadcast_together(a if left else matrix_transpose(a), columns, but=2))
        return squeeze(x, -1) if vectors else x


def solve_triangular(a: Var, b: Var, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Var:
    """The solution ``x`` of ``a x = b``, or of ``x a = b`` if not `left`, for a triangular ``a``: float[...b m m], float[...b m k].

    Leading axes are broadcast. For the rest see `solve_triangular_columns`.
    """
    with undone_on_error(require_type(a, "solve_triangular: a").block.program):
        _matrices(a, "solve_triangular: a")
        _matrices(b, "solve_triangular: b")
        if not left:
            across = solve_triangular(matrix_transpose(a), matrix_transpose(b), upper=not upper, unitriangular=unitriangular)
            return matrix_transpose(across)
        return solve_triangular_columns(*broadcast_together(a, b, but=2), upper=upper, unitriangular=unitriangular)


def cholesky_solve(b: Var, y: Var, *, upper: bool = False) -> Var:
    """The solution ``x`` of ``y y' x = b`` for a lower triangular ``y`` from `cholesky`, or of ``y' y x = b`` for an `upper` one."""
    with undone_on_error(require_type(b, "cholesky_solve: b").block.program):
        _matrices(y, "cholesky_solve: y")
        lower = adjoint(y) if upper else y
        return solve_triangular(adjoint(lower), solve_triangular(lower, b, upper=False), upper=True)


def lstsq(a: Var, b: Var, *, relative: float | None = None) -> Var:
    """The least-squares solution of ``a x = b``, the shortest if there are several: ``pinv(a) b``, float[...b m n], float[...b m k]."""
    with undone_on_error(require_type(a, "lstsq: a").block.program):
        _matrices(a, "lstsq: a")
        _matrices(b, "lstsq: b")
        return matrix_product(pinv(a, relative=relative), b)


def matrix_power(x: Var, exponent: int) -> Var:
    """Each matrix to an integer power, by repeated squaring; of its inverse if the exponent is negative, the identity if it is 0."""
    with undone_on_error(require_type(x, "matrix_power: x").block.program):
        shape = _matrices(x, "matrix_power: x")
        if not isinstance(exponent, int) or isinstance(exponent, bool):
            raise ArgumentError(f"matrix_power: exponent must be an integer, not {exponent!r:.60}", location=here())
        if exponent == 0:
            return broadcast_to(eye(x, rows=shape[-1], dtype=x.dtype), [x], shape=shape)
        square, left, found = x if exponent > 0 else inverse(x), abs(exponent), None
        while True:
            if left & 1:
                found = square if found is None else matmul(found, square)
            left >>= 1
            if not left:
                return found  # type: ignore[return-value]  # the highest bit is 1
            square = matmul(square, square)


def svdvals(x: Var) -> Var:
    """The singular values of each matrix, descending. They have a gradient even if some are equal."""
    return svd(x)[1]


def eigvalsh(x: Var) -> Var:
    """The eigenvalues of the symmetric part of each matrix, ascending. They have a gradient even if some are equal."""
    return eigh(x)[0]


def nuclear_norm(x: Var, *, axes: tuple[int, int] = (-2, -1), keepdim: bool = False) -> Var:
    """The sum of the singular values of each matrix, along two axes."""
    return matrix_norm(x, order="nuc", axes=axes, keepdim=keepdim)


def matrix_norm(x: Var, *, order: float | str = "fro", axes: tuple[int, int] = (-2, -1), keepdim: bool = False) -> Var:
    """A norm of each matrix along two axes, rows and columns.

    "fro" is the square root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the largest and smallest of these; 1 and -1
    the largest and smallest sum of magnitudes in a column, infinity and minus infinity in a row. Raises ArgumentError for another order.
    """
    with undone_on_error(require_type(x, "matrix_norm: x").block.program):
        shape = _matrices(x, "matrix_norm: x")
        rows, columns = (require_axis(shape, axis) for axis in axes)
        if rows == columns:
            raise ArgumentError(f"matrix_norm: axes {axes} are the same", location=here(), given=[x.describe()])
        if order == "fro":
            return vector_norm(x, axis=(rows, columns), keepdim=keepdim)
        if order in (1, -1, math.inf, -math.inf):
            summed, left = (rows, columns) if order in (1, -1) else (columns, rows)
            sums = reduce_sum(abs_(x), axis=summed, keepdim=True)
            found = (amax if order > 0 else amin)(sums, axis=left, keepdim=True)  # type: ignore[operator]  # a number by now
            return found if keepdim else squeeze(found, rows, columns)
        if order not in (2, -2, "nuc"):
            raise ArgumentError(
                f"matrix_norm: order is {order!r:.40}", location=here(), contract='one of "fro", "nuc", 1, 2, inf, -1, -2, -inf'
            )
        front = tuple(axis for axis in range(len(shape)) if axis not in (rows, columns))
        values = svdvals(x if (rows, columns) == (len(shape) - 2, len(shape) - 1) else transpose(x, axes=(*front, rows, columns)))
        found = reduce_sum(values, axis=-1) if order == "nuc" else (amax if order == 2 else amin)(values, axis=-1)
        return unsqueeze(found, *sorted((rows, columns))) if keepdim else found

"""Products of vectors, matrices and tensors, composed of operators, and `gemm`."""

from collections.abc import Sequence

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import multiply as times
from oarlock.ir.var import Var
from oarlock.op.complex_parts import conjugated
from oarlock.op.composed.arithmetic import constant_like, is_one
from oarlock.op.composed.composition import composition
from oarlock.op.composed.einsum import einsum
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.composed.shape import broadcast_together, known_shape, unsqueeze
from oarlock.op.elementwise import multiply, subtract
from oarlock.op.manipulation import reshape
from oarlock.op.matrix import linear
from oarlock.op.rearrangement import roll
from oarlock.op.reduction import reduce_sum
from oarlock.registry.creator import require_type

__all__ = ["cross", "gemm", "inner", "kron", "outer", "tensordot", "vecdot"]


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@composition
def outer(x: Var, y: Var) -> Var:
    """The outer product of two vectors: T[n], T[m] -> T[n m]. Raises ShapeError."""
    if any(len(known_shape(each, "outer")) != 1 for each in (x, y)):
        raise ShapeError("outer: both inputs must have one axis", location=here(), given=[x.describe(), y.describe()])
    return multiply(unsqueeze(x, 1), unsqueeze(y, 0))


@composition
def inner(x: Var, y: Var) -> Var:
    """The sum of products along the last axes, for each pair of rows; a number is multiplied with all elements."""
    ranks = [len(known_shape(each, "inner")) for each in (x, y)]
    return tensordot(x, y, axes=((-1,), (-1,))) if all(ranks) else multiply(x, y)


@composition
def vecdot(x: Var, y: Var, *, axis: int = -1) -> Var:
    """The sum of ``conj(x) * y`` along an axis; the other axes are broadcast."""
    return reduce_sum(multiply(conjugated(x), y), axis=axis)


@composition
def tensordot(x: Var, y: Var, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Var:
    """The sum of products over axes of both: the last ``axes`` of ``x`` and the first of ``y``, or the given ones. Raises ShapeError."""
    of_x, of_y = known_shape(x, "tensordot"), known_shape(y, "tensordot")
    given = [x.describe(), y.describe()]
    if isinstance(axes, int):
        if not 0 <= axes <= min(len(of_x), len(of_y)):
            raise ShapeError(f"tensordot: the inputs do not both have {axes} axes", location=here(), given=given)
        axes = (range(len(of_x) - axes, len(of_x)), range(axes))
    first, second = axes
    if len(first) != len(second):
        raise ShapeError(f"tensordot: {len(first)} axes of x do not match {len(second)} of y", location=here(), given=given)
    left = list(_LETTERS[: len(of_x)])
    right = list(_LETTERS[len(of_x) : len(of_x) + len(of_y)])
    try:
        pairs = [(require_axis(of_x, one), require_axis(of_y, other)) for one, other in zip(first, second, strict=True)]
    except ShapeError as error:
        raise ShapeError(f"tensordot: {error.message}", location=here(), given=given) from None
    for one, other in pairs:
        right[other] = left[one]
    summed = {left[one] for one, _ in pairs}
    rest = "".join(letter for letter in left + right if letter not in summed)
    return einsum(f"{''.join(left)},{''.join(right)}->{rest}", x, y)


@composition
def kron(x: Var, y: Var) -> Var:
    """The Kronecker product: each element of ``x`` replaced by ``y`` times it. Missing axes are added in front."""
    of_x, of_y = known_shape(x, "kron"), known_shape(y, "kron")
    rank = max(len(of_x), len(of_y))
    of_x, of_y = (1,) * (rank - len(of_x)) + of_x, (1,) * (rank - len(of_y)) + of_y
    left = reshape(x, shape=[size for each in of_x for size in (each, 1)])
    right = reshape(y, shape=[size for each in of_y for size in (1, each)])
    return reshape(multiply(left, right), shape=[times(one, other) for one, other in zip(of_x, of_y, strict=True)])


@composition
def cross(x: Var, y: Var, *, axis: int = -1) -> Var:
    """The cross product of vectors of three numbers along ``axis``; the other axes are broadcast. Raises ShapeError."""
    given = [x.describe(), y.describe()]
    x, y = broadcast_together(x, y)
    try:
        at = require_axis(known_shape(x, "cross"), axis)
    except ShapeError as error:
        raise ShapeError(f"cross: {error.message}", location=here(), given=given) from None
    if known_shape(x, "cross")[at] != 3:
        raise ShapeError(f"cross: axis {axis} must have the size 3, not {known_shape(x, 'cross')[at]}", location=here(), given=given)

    def turned(z: Var, by: int) -> Var:
        return roll(z, shifts=(by,), axes=(at,))

    return subtract(multiply(turned(x, -1), turned(y, -2)), multiply(turned(x, -2), turned(y, -1)))


def gemm(x: Var, w: Var, scale: float | Var = 1.0, act: Activation | None = None) -> Var | tuple[Var, Var]:
    """``scale x @ w``: float[*b k], float[k m] -> float[*b m]; with an activation, `act`, also ``act`` of it.

    `scale` is a number or a scalar variable, `act` the name of an activation, as in `fc`, or a function. It appends `linear`, `multiply`
    and the activation, so gradients and passes see these ops. Raises their errors, and ArgumentError for an unknown activation.
    """
    require_activation(act)
    with undone_on_error(require_type(x, "gemm: x").block.program):
        product = linear(x, w)
        if not is_one(scale):
            product = multiply(product, constant_like(scale, product, what="gemm: scale"))
        return product if act is None else (product, activate(product, act))

"""Distances and cosine similarities of vectors, and distances between all pairs of rows."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.along_axis import index
from oarlock.op.composed.composition import composition
from oarlock.op.composed.norms import vector_norm
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full, full_like
from oarlock.op.elementwise import add, clip, divide, multiply, subtract
from oarlock.op.manipulation import concat
from oarlock.op.reduction import reduce_sum, same_shape
from oarlock.op.told_shape import arange, broadcast_to
from oarlock.registry.creator import require_type

__all__ = ["cdist", "cosine_similarity", "pairwise_distance", "pdist"]


def cosine_similarity(x: Var, y: Var, *, axis: int = 1, epsilon: float = 1e-8) -> Var:
    """The cosine of the angle between vectors along ``axis``, which are broadcast. Lengths are at least ``epsilon``."""
    with undone_on_error(require_type(x, "cosine_similarity: x").block.program):
        if not same_shape(x, y):  # a length counts the copies that broadcasting makes, as in PyTorch
            zeros = [full_like(each, value=0.0, dtype=each.dtype) for each in (x, y)]
            x, y = add(x, zeros[1]), add(y, zeros[0])
        along = reduce_sum(multiply(x, y), axis=axis)
        lengths = (clip(vector_norm(each, axis=axis), epsilon) for each in (x, y))
        return divide(along, multiply(*lengths))


def pairwise_distance(x: Var, y: Var, *, order: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False) -> Var:
    """The `vector_norm` of ``x - y + epsilon`` along the last axis, with broadcasting."""
    with undone_on_error(require_type(x, "pairwise_distance: x").block.program):
        return vector_norm(add(subtract(x, y), epsilon), order=order, axis=-1, keepdim=keepdim)


@composition
def cdist(x: Var, y: Var, *, order: float = 2.0) -> Var:
    """The `vector_norm` of the difference of each pair of rows: float[*b n k], float[*b m k] -> float[*b n m]. ``*b`` is broadcast."""
    if any(len(known_shape(each, "cdist")) < 2 for each in (x, y)):
        raise ShapeError("cdist: both inputs must have rows", location=here(), given=[x.describe(), y.describe()])
    return vector_norm(subtract(unsqueeze(x, -2), unsqueeze(y, -3)), order=order, axis=-1)


@composition
def pdist(x: Var, *, order: float = 2.0) -> Var:
    """The `vector_norm` of the difference of rows i and j, for each i < j: float[n k] -> float[n (n - 1) / 2]. n must be known."""
    shape = known_shape(x, "pdist")
    if len(shape) != 2 or isinstance(shape[0], str):
        raise ShapeError("pdist: x must have a known number of rows", location=here(), given=[x.describe()])
    count = int(shape[0])
    if count < 2:
        return full(shape=(0,), value=0.0, dtype=x.dtype)
    first = [broadcast_to(full(shape=(1,), value=float(at), dtype="int64"), shape=(count - at - 1,)) for at in range(count - 1)]
    second = [arange([], start=(at + 1,), stop=(count,)) for at in range(count - 1)]
    rows, others = (index(x, [concat(each)], axes=(0,)) for each in (first, second))
    return vector_norm(subtract(rows, others), order=order, axis=-1)

"""Cosine similarities and distances of vectors along an axis."""

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.composed.norms import vector_norm
from oarlock.op.elementwise import add, clip, divide, multiply, subtract
from oarlock.op.reduction import reduce_sum
from oarlock.registry.creator import require_type

__all__ = ["cosine_similarity", "pairwise_distance"]


def cosine_similarity(x: Var, y: Var, *, axis: int = 1, epsilon: float = 1e-8) -> Var:
    """The cosine of the angle between vectors along ``axis``, which are broadcast. Lengths are at least ``epsilon``."""
    with undone_on_error(require_type(x, "cosine_similarity: x").block.program):
        along = reduce_sum(multiply(x, y), axis=axis)
        lengths = (clip(vector_norm(each, axis=axis), epsilon) for each in (x, y))
        return divide(along, multiply(*lengths))


def pairwise_distance(x: Var, y: Var, *, order: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False) -> Var:
    """The `vector_norm` of ``x - y + epsilon`` along the last axis, with broadcasting."""
    with undone_on_error(require_type(x, "pairwise_distance: x").block.program):
        return vector_norm(add(subtract(x, y), epsilon), order=order, axis=-1, keepdim=keepdim)

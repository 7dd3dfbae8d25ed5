"""Axes of size 1 inserted and removed, and two variables broadcast to one shape."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.shape_rules import broadcast_shape, require_axis
from oarlock.ir.size import Shape, is_at_least
from oarlock.ir.var import Var
from oarlock.op.manipulation import reshape, slice_
from oarlock.op.told_shape import broadcast_to

__all__ = ["broadcast_together", "known_shape", "require_axis_of", "squeeze", "unsqueeze"]


def known_shape(x: Var, what: str) -> Shape:
    """Return the shape of a variable. Raises ArgumentError if its rank is unknown."""
    if x.shape is None:
        raise ArgumentError(f'{what}: the shape of "{x.name}" is unknown', location=here(), given=[x.describe()])
    return x.shape


def require_axis_of(x: Var, axis: int, what: str, *others: Var) -> int:
    """Return an axis of ``x``, counted from 0. Raises ShapeError, which describes ``x`` and `others`, for a missing one."""
    shape = known_shape(x, what)
    try:
        return require_axis(shape, axis)
    except ShapeError as error:
        raise ShapeError(f"{what}: {error.message}", location=here(), given=[each.describe() for each in (x, *others)]) from None


def unsqueeze(x: Var, *axes: int) -> Var:
    """``x`` with a new axis of size 1 at each of ``axes`` of the result; negative ones count from the end. Raises ShapeError."""
    shape = known_shape(x, "unsqueeze")
    rank = len(shape) + len(axes)
    places = {require_axis((1,) * rank, axis, "the result") for axis in axes}
    rest = iter(shape)
    sizes = [1 if axis in places else next(rest, 1) for axis in range(rank)]
    return reshape(x, shape=sizes)


def squeeze(x: Var, *axes: int) -> Var:
    """``x`` without ``axes``, which must have size 1; by default without all axes known to have size 1. Raises ShapeError."""
    shape = known_shape(x, "squeeze")
    places = {require_axis(shape, axis) for axis in axes} if axes else {axis for axis, size in enumerate(shape) if size == 1}
    for axis in places:
        if isinstance(shape[axis], str) and is_at_least(1, shape[axis]):
            x = slice_(x, axis=axis, stop=1)  # which raises when the program runs, if it is empty
    return reshape(x, shape=[size for axis, size in enumerate(shape) if axis not in places]) if places else x


def broadcast_together(x: Var, y: Var, *, but: int = 0) -> tuple[Var, Var]:
    """Return two variables broadcast to one shape by NumPy's rules, except for their last ``but`` axes. Raises ShapeError."""
    of_x, of_y = known_shape(x, "broadcast"), known_shape(y, "broadcast")
    front = broadcast_shape(of_x[: len(of_x) - but], of_y[: len(of_y) - but])
    return _repeated(x, y, front, but), _repeated(y, x, front, but)


def _repeated(x: Var, other: Var, front: Shape, but: int) -> Var:
    shape = known_shape(x, "broadcast")
    wanted = (*front, *shape[len(shape) - but :])
    return x if shape == wanted else broadcast_to(x, [other], shape=wanted)

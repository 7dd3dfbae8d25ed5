"""Axes of size 1 put in and taken away, and two shapes broadcast: what compositions over any number of axes are written with."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.shape_rules import broadcast_shape, require_axis
from oarlock.ir.size import Shape, is_at_least
from oarlock.ir.var import Var
from oarlock.op.manipulation import reshape, slice_
from oarlock.op.told_shape import broadcast_to

__all__ = ["broadcast_together", "known_shape", "squeeze", "unsqueeze"]


def known_shape(x: Var, what: str) -> Shape:
    """The shape of a variable. Raises ArgumentError where not even its rank is known."""
    if x.shape is None:
        raise ArgumentError(f'{what}: nothing is known of the shape of "{x.name}"', location=here(), given=[x.describe()])
    return x.shape


def unsqueeze(x: Var, *axes: int) -> Var:
    """``x`` with a size of 1 at each of ``axes`` of the result, which count from the end where they are negative. Raises ShapeError."""
    shape = known_shape(x, "unsqueeze")
    rank = len(shape) + len(axes)
    places = {require_axis((1,) * rank, axis, "the result") for axis in axes}
    rest = iter(shape)
    sizes = [1 if axis in places else next(rest, 1) for axis in range(rank)]
    return reshape(x, shape=sizes)


def squeeze(x: Var, *axes: int) -> Var:
    """``x`` without ``axes``, which are of size 1; without all that are known to be, where none is named. Raises ShapeError."""
    shape = known_shape(x, "squeeze")
    places = {require_axis(shape, axis) for axis in axes} if axes else {axis for axis, size in enumerate(shape) if size == 1}
    for axis in places:
        if isinstance(shape[axis], str) and is_at_least(1, shape[axis]):
            x = slice_(x, axis=axis, stop=1)  # which the run refuses where there is none
    return reshape(x, shape=[size for axis, size in enumerate(shape) if axis not in places]) if places else x


def broadcast_together(x: Var, y: Var, *, but: int = 0) -> tuple[Var, Var]:
    """Two variables repeated to one shape by NumPy's rules, but for their last axes, which stay. Raises ShapeError."""
    of_x, of_y = known_shape(x, "broadcast"), known_shape(y, "broadcast")
    front = broadcast_shape(of_x[: len(of_x) - but], of_y[: len(of_y) - but])
    return _repeated(x, y, front, but), _repeated(y, x, front, but)


def _repeated(x: Var, other: Var, front: Shape, but: int) -> Var:
    shape = known_shape(x, "broadcast")
    wanted = (*front, *shape[len(shape) - but :])
    return x if shape == wanted else broadcast_to(x, [other], shape=wanted)

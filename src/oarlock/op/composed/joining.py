"""Tensors joined: stacked, in blocks on a diagonal, and in all combinations."""

from collections.abc import Sequence
from itertools import combinations as combinations_of
from itertools import combinations_with_replacement

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.shape_rules import broadcast_shape
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.manipulation import concat, reshape, slice_, stack, transpose
from oarlock.op.padding import pad
from oarlock.op.told_shape import broadcast_to
from oarlock.suggestions import did_you_mean

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "column_stack", "combinations", "dstack",
    "hstack", "meshgrid", "vstack",
]  # fmt: skip


@composition
def atleast_1d(x: Var) -> Var:
    """``x`` with at least one axis."""
    return x if known_shape(x, "atleast_1d") else reshape(x, shape=(1,))


@composition
def atleast_2d(x: Var) -> Var:
    """``x`` with at least two axes; new ones are in front."""
    rank = len(known_shape(x, "atleast_2d"))
    return x if rank > 1 else unsqueeze(x, *range(2 - rank))


@composition
def atleast_3d(x: Var) -> Var:
    """``x`` with at least three axes: T[n] becomes T[1 n 1], T[n m] becomes T[n m 1]."""
    rank = len(known_shape(x, "atleast_3d"))
    return x if rank > 2 else unsqueeze(x, *((0, 1, 2), (0, 2), (2,))[rank])


@composition
def hstack(*xs: Var) -> Var:
    """Concatenate tensors along axis 1, or along axis 0 if they have only one. A number becomes a row of one."""
    items = [atleast_1d(x) for x in xs]
    return concat(items, axis=0 if len(known_shape(items[0], "hstack")) == 1 else 1)


@composition
def vstack(*xs: Var) -> Var:
    """Concatenate tensors along axis 0; those with one axis become rows."""
    return concat([atleast_2d(x) for x in xs], axis=0)


@composition
def dstack(*xs: Var) -> Var:
    """Concatenate tensors along axis 2, each with at least three axes as in `atleast_3d`."""
    return concat([atleast_3d(x) for x in xs], axis=2)


@composition
def column_stack(*xs: Var) -> Var:
    """Concatenate tensors along axis 1; those with one axis become columns."""
    return concat([x if len(known_shape(x, "column_stack")) > 1 else reshape(x, shape=(-1, 1)) for x in xs], axis=1)


@composition
def block_diag(*xs: Var) -> Var:
    """Matrices on the diagonal of a matrix, zeros elsewhere. Rows and numbers count as matrices of one row; sizes must be known."""
    items = [atleast_2d(x) for x in xs]
    widths = [known_shape(x, "block_diag") for x in items]
    if any(len(each) != 2 or isinstance(each[1], str) for each in widths):
        raise ShapeError(
            "block_diag: each input must be a matrix with a known number of columns", location=here(), given=[x.describe() for x in xs]
        )
    counts = [int(each[1]) for each in widths]
    rows = []
    for number, item in enumerate(items):
        before, after = sum(counts[:number]), sum(counts[number + 1 :])
        rows.append(pad(item, before=(before,), after=(after,)))
    return concat(rows, axis=0)


def _common_shape(xs: Sequence[Var], what: str) -> Shape:
    shape: Shape = ()
    for x in xs:
        try:
            shape = broadcast_shape(shape, known_shape(x, what))
        except ShapeError as error:
            raise ShapeError(f"{what}: {error.message}", location=here(), given=[x.describe() for x in xs]) from None
    return shape


@composition
def broadcast_tensors(*xs: Var) -> list[Var]:
    """Broadcast all variables to one shape. Raises ShapeError."""
    shape = _common_shape(xs, "broadcast_tensors")
    return [x if x.shape == shape else broadcast_to(x, list(xs), shape=shape) for x in xs]


@composition
def meshgrid(*xs: Var, indexing: str = "ij") -> list[Var]:
    """The coordinates of a grid: each input along an axis of its own, broadcast along the others. A number counts as a row of one.

    With ``indexing="xy"`` the first two axes are swapped, as for images.
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(
            f"meshgrid: indexing is 'ij' or 'xy', not {indexing!r:.40}", location=here(), hint=did_you_mean(str(indexing), ("ij", "xy"))
        )
    items = [atleast_1d(x) for x in xs]
    if any(len(known_shape(item, "meshgrid")) > 1 for item in items):
        raise ShapeError("meshgrid: each input must have at most one axis", location=here(), given=[x.describe() for x in xs])
    count = len(items)
    places = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    return broadcast_tensors(
        *(unsqueeze(item, *(at for at in range(count) if at != place)) for item, place in zip(items, places, strict=True))
    )


@composition
def cartesian_prod(*xs: Var) -> Var:
    """All combinations of one element of each input, as rows: T[m k] from ``k`` tensors of one axis. A single one is returned as it is."""
    if any(len(known_shape(x, "cartesian_prod")) != 1 for x in xs):
        raise ShapeError("cartesian_prod: each input must have one axis", location=here(), given=[x.describe() for x in xs])
    return xs[0] if len(xs) == 1 else stack([reshape(each, shape=(-1,)) for each in meshgrid(*xs)], axis=1)


@composition
def combinations(x: Var, *, r: int = 2, with_replacement: bool = False) -> Var:
    """All combinations of ``r`` elements of ``x``, T[n], in order, as rows. ``with_replacement`` repeats elements. n must be known."""
    shape = known_shape(x, "combinations")
    if len(shape) != 1 or isinstance(shape[0], str) or r < 0:
        raise ShapeError(f"combinations of {r} need one axis of known size", location=here(), given=[x.describe()])
    choose = combinations_with_replacement if with_replacement else combinations_of
    rows = list(choose(range(int(shape[0])), r))
    if not rows or not r:
        return reshape(slice_(x, stop=0), shape=(0, r) if r else (0,))
    parts = [slice_(x, start=number, stop=number + 1) for number in range(int(shape[0]))]
    columns = [concat([parts[row[at]] for row in rows], axis=0) for at in range(r)]
    return transpose(stack(columns), axes=(1, 0))

"""`x[...]` on variables, and indexing by rows of indices, composed of slices and index operators."""

import operator
from types import EllipsisType

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.var import Var
from oarlock.op.along_axis import index, index_put
from oarlock.op.composed.shape import known_shape, squeeze, unsqueeze
from oarlock.op.composed.slices import part_along
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.indexing import nonzero
from oarlock.op.manipulation import concat, slice_
from oarlock.op.rearrangement import flip
from oarlock.op.told_shape import arange
from oarlock.registry.creator import describe_value, find_read_hint, require_type

__all__ = ["gather_nd", "scatter_nd", "subscript"]

Index = int | slice | EllipsisType | Var | None
"""An item of `x[...]`."""


def subscript(x: Var, key: Index | tuple[Index, ...]) -> Var:
    """``x[key]`` as in PyTorch: integers, slices with steps of either sign, ``...``, None, variables of integers or bools, lists.

    Bounds of slices are clipped to the axis, even if its size is a symbol: the size of ``x[:, :512]`` is ``min(t,512)``. An integer must be
    an index of the axis; for a symbolic size this is checked when the program runs. Variables of integers are broadcast; if they are not
    adjacent, their axes come first. A variable of bools selects its true positions, whose number is known when the program runs. Raises
    ShapeError and ArgumentError.
    """
    x = require_type(x, "x[...]: x")
    items = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(item, list) for item in items):
        with undone_on_error(x.block.program):
            return subscript(x, tuple(_row_of(item) if isinstance(item, list) else item for item in items))
    asked = sum(_axes_of(item) for item in items)
    rank = len(known_shape(x, "x[...]"))
    if asked > rank or sum(item is Ellipsis for item in items) > 1:
        what = f"{asked} axes are indexed" if asked > rank else "... occurs twice"
        raise ShapeError(f'x[...]: {what}, but "{x.name}" has {rank}', location=here(), given=[x.describe()])
    picked: list[tuple[int, Var]] = []
    axis = 0
    with undone_on_error(x.block.program):
        for item in items:
            if item is None:
                x = unsqueeze(x, axis)
                axis += 1
            elif isinstance(item, EllipsisType):
                axis += rank - asked
            elif isinstance(item, Var):
                picked += [(axis + number, column) for number, column in enumerate(_columns(item))]
                axis += _axes_of(item)
            elif isinstance(item, slice):
                x = _part(x, axis, item)
                axis += 1
            else:
                x = _element(x, axis, operator.index(item))  # type: ignore[arg-type]
        return index(x, [var for _, var in picked], axes=tuple(at for at, _ in picked)) if picked else x


def _row_of(numbers: list[object]) -> Var:
    """Return a list of indices as a variable. Raises ArgumentError for other elements."""
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise ArgumentError(f"x[...]: a list must contain integers, not {describe_value(number)}", location=here())
    places = [full(shape=(1,), value=float(operator.index(number)), dtype=DType.INT64) for number in numbers]  # type: ignore[arg-type]
    return concat(places) if places else full(shape=(0,), value=0.0, dtype=DType.INT64)


def _axes_of(item: object) -> int:
    """Return how many axes an item indexes. Raises ArgumentError for an invalid item."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Var) and (item.dtype is DType.BOOL or item.dtype.is_integer):
        return len(known_shape(item, "x[...]")) if item.dtype is DType.BOOL else 1
    if not isinstance(item, slice) and (isinstance(item, bool) or not hasattr(item, "__index__")):
        raise ArgumentError(
            f"x[...] takes numbers, slices, ..., None, lists of numbers, and variables of integers or bools, not {describe_value(item)}",
            location=here(),
            hint=find_read_hint(item),
        )
    return 1


def _columns(item: Var) -> list[Var]:
    """Return the index variables of an item: itself, or for bools the true positions, axis by axis."""
    if item.dtype is not DType.BOOL:
        return [item if item.dtype is DType.INT64 else cast(item, dtype="int64")]
    places, rank = nonzero(item), len(known_shape(item, "x[...]"))
    return [places] if rank == 1 else _last_axis(places, rank)


def _last_axis(x: Var, count: int) -> list[Var]:
    return [squeeze(slice_(x, axis=-1, start=number, stop=number + 1), -1) for number in range(count)]


def _element(x: Var, axis: int, number: int) -> Var:
    size = known_shape(x, "x[...]")[axis]
    if isinstance(size, int) and not -size <= number < size:
        raise ShapeError(f"x[...]: index {number} is out of range for an axis of the size {size}", location=here(), given=[x.describe()])
    return squeeze(slice_(x, axis=axis, start=number, stop=number + 1 or None), axis)


def _part(x: Var, axis: int, part: slice) -> Var:
    size = known_shape(x, "x[...]")[axis]
    for bound in (part.start, part.stop, part.step):
        if not (bound is None or hasattr(bound, "__index__")):
            raise ArgumentError(
                f"x[...]: the bounds of a slice must be integers, not {describe_value(bound)}; see ol.op.narrow", location=here()
            )
    start, stop, step = (None if bound is None else operator.index(bound) for bound in (part.start, part.stop, part.step))
    if step == 0:
        raise ArgumentError("x[...]: the step of a slice must not be 0", location=here(), given=[x.describe()])
    if isinstance(size, str):
        return part_along(x, axis, start, stop, step or 1)
    places = range(*part.indices(size))
    if not places:
        return slice_(x, axis=axis, start=0, stop=0)
    first, last = min(places[0], places[-1]), max(places[0], places[-1])
    if (first, last + 1) != (0, size):
        x = slice_(x, axis=axis, start=first, stop=last + 1)
    if places.step < 0:
        x = flip(x, axes=(axis,))
    return x if abs(places.step) == 1 else slice_(x, axis=axis, step=abs(places.step))


def gather_nd(x: Var, indices: Var, *, batch: int = 0) -> Var:
    """Elements by rows of indices, int64[*b i k]: ``y[b, i] = x[b, *indices[b, i]]``.

    Both have the same ``batch`` leading axes; the ``k`` numbers of a row are indices along the axes after them. Raises ShapeError.
    """
    shape, rows = known_shape(x, "gather_nd"), known_shape(indices, "gather_nd")
    count = _require_columns(rows, len(shape) - batch, indices)
    if not 0 <= batch < len(rows):
        raise ShapeError(f"gather_nd: batch is {batch}, but indices have {len(rows)} axes", location=here(), given=[indices.describe()])
    with undone_on_error(x.block.program):
        width = len(rows) - 1
        own = [unsqueeze(arange([x], stop=(shape[axis],)), *(at for at in range(width) if at != axis)) for axis in range(batch)]
        return index(x, [*own, *_last_axis(indices, count)], axes=tuple(range(batch + count)))


def scatter_nd(x: Var, indices: Var, values: Var, *, accumulate: bool = False) -> Var:
    """``x`` with ``values`` written to the positions given by rows of indices, or added to them; see `gather_nd`."""
    count = _require_columns(known_shape(indices, "scatter_nd"), len(known_shape(x, "scatter_nd")), indices)
    with undone_on_error(x.block.program):
        return index_put(x, values, _last_axis(indices, count), axes=tuple(range(count)), accumulate=accumulate)


def _require_columns(shape, rank: int, indices: Var) -> int:
    """Return how many numbers a row has. Raises ShapeError if it is unknown, or exceeds the number of axes."""
    require_axis(shape, -1, indices.name)
    if not isinstance(shape[-1], int) or not 1 <= shape[-1] <= rank:
        raise ShapeError(f"rows of {shape[-1]} numbers do not index {rank} axes", location=here(), given=[indices.describe()])
    return shape[-1]

"""Helpers of rules: axes, shapes and constants in the form of Oarlock's operators."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from oarlock import op
from oarlock.errors import ShapeError
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape, Size
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer

__all__ = [
    "axes_of",
    "axis_of",
    "axis_or_axes",
    "by_pairs",
    "constant",
    "filled",
    "moved",
    "numbers_of",
    "rank_of",
    "reshaped",
    "shape_of",
    "squeezed",
    "unsqueezed",
]


def shape_of(x: Var) -> Shape:
    """Return the shape of a variable. Raises Unsupported if its rank is unknown."""
    if x.shape is None:
        raise Unsupported("the number of dimensions of an input is unknown")
    return x.shape


def rank_of(x: Var) -> int:
    return len(shape_of(x))


def numbers_of(x: Var) -> tuple[int, ...]:
    """Return the shape of a variable without symbolic sizes. Raises Unsupported."""
    shape = shape_of(x)
    if not all(isinstance(size, int) for size in shape):
        raise Unsupported(f"it needs constant sizes, not {list(shape)}", hint="pass sizes={...} to fix symbolic sizes")
    return shape  # type: ignore[return-value]


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front. Raises Unsupported if it is out of range."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise Unsupported(f"{axis} is not an axis of {rank} dimensions")
    return axis % rank


def axes_of(axes: "Known | Iterable[int]", rank: int) -> tuple[int, ...]:
    """Return axes counted from the front. Raises Unsupported for duplicates."""
    found = tuple(axis_of(axis, rank) for axis in (axes.items() if isinstance(axes, Known) else axes))
    if len(set(found)) != len(found):
        raise Unsupported(f"{list(found)} has a duplicate axis")
    return found


def axis_or_axes(axes: tuple[int, ...]) -> int | tuple[int, ...]:
    """Return axes as an attribute; a single axis as a number, as passes know more about it."""
    return axes[0] if len(axes) == 1 else axes


def constant(number: float, like: "Var | DType") -> Var:
    """Return a number as a scalar variable."""
    return op.full(shape=(), value=float(number), dtype=like.dtype if isinstance(like, Var) else like)


def reshaped(x: Var, shape: Sequence[Size], importer: "Importer | None" = None) -> Var:
    """Reshape `x`; one size may be -1. Other variables supply the symbols that the shape of `x` does not determine."""
    if tuple(shape) == x.shape:
        return x
    try:
        return op.reshape(x, shape=Sizes(shape))
    except ShapeError:
        likes = importer.writer.variables_with_sizes(shape) if importer is not None else []
        if not likes:
            raise
        return op.view(x, likes, shape=Sizes(shape))


def unsqueezed(x: Var, axes: Iterable[int]) -> Var:
    """Insert axes of size 1 at `axes` of the result."""
    left, inserted = list(shape_of(x)), sorted(axes)
    if len(inserted) > 64:
        raise Unsupported(f"it adds {len(inserted)} dimensions, more than 64")
    for axis in inserted:
        left.insert(axis, 1)
    return reshaped(x, left)


def squeezed(x: Var, axes: Iterable[int]) -> Var:
    """Remove `axes`, which must have size 1."""
    dropped, shape = set(axes), shape_of(x)
    wrong = next((axis for axis in dropped if isinstance(shape[axis], int) and shape[axis] != 1), None)
    if wrong is not None:
        raise Unsupported(f"axis {wrong} has the size {shape[wrong]}; only axes of size 1 can be removed")
    return reshaped(x, [size for axis, size in enumerate(shape) if axis not in dropped])


def moved(x: Var, axis: int, to: int) -> Var:
    """Move an axis to another position."""
    rank = rank_of(x)
    axes = [other for other in range(rank) if other != axis % rank]
    axes.insert(to % rank, axis % rank)
    return x if axes == list(range(rank)) else op.transpose(x, axes=tuple(axes))


def filled(x: Var, number: float, dtype: DType | None = None) -> Var:
    """Return a tensor of the shape of `x`, filled with `number`."""
    return op.full_like(x, value=float(number), dtype=dtype or x.dtype)


def by_pairs(operator: Callable[[Var, Var], Var], items: Sequence[Var]) -> Var:
    """Reduce the items by a binary operator, from first to last. Raises Unsupported if there are none."""
    if not items:
        raise Unsupported("it has no input")
    result = items[0]
    for item in items[1:]:
        result = operator(result, item)
    return op.assign(result) if len(items) == 1 else result

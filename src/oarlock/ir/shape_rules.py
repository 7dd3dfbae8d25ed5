"""Shape checks shared by operators. Sizes known not to fit are rejected; unknown symbols are accepted and checked during the run."""

from collections.abc import Sequence

from oarlock.errors import ShapeError
from oarlock.ir.size import (
    Shape,
    Size,
    add,
    can_be_equal,
    divide,
    floor_divide,
    format_shape,
    is_at_least,
    is_same,
    maximum,
    minimum,
    multiply,
    product,
    sum_of,
    whole,
)

__all__ = [
    "broadcast_shape",
    "count_windows",
    "differ",
    "filled_shape",
    "gives_way",
    "is_within",
    "may_be",
    "may_be_broadcast",
    "range_within",
    "require_at_most",
    "require_axes",
    "require_axis",
    "require_broadcast",
    "require_equal_numbers",
    "require_filled",
    "require_numbered",
    "require_parts",
    "require_same",
    "slice_size",
]

_MOST_STEPS = 2**31 - 1  # the maximum for which PyTorch's kernels do not overflow


def differ(left: Size, right: Size) -> bool:
    """Return whether two sizes are known to be different for all values of their symbols: 3 and 4, `n` and `n+1`, `2*n` and 3."""
    if isinstance(left, int) and isinstance(right, int):
        return left != right
    return not can_be_equal(left, right)


def may_be(left: Size, right: Size) -> bool:
    """Return whether two sizes may be equal. A number and a symbol may be; two symbols must be provably equal."""
    if left == right:
        return True
    return can_be_equal(left, right) if isinstance(left, int) != isinstance(right, int) else is_same(left, right)


def may_be_broadcast(left: Size, right: Size) -> bool:
    """Return whether two sizes may broadcast: they may be equal, or one of them may be 1."""
    return may_be(left, right) or may_be(left, 1) or may_be(right, 1)


def gives_way(size: Size, to: Size) -> bool:
    """Return whether `size` provably broadcasts to `to`: it is 1, or it is 1 unless both are 0, as `min(n,1)` and n."""
    if size == 1 or isinstance(size, int) or isinstance(to, int) or "min(" not in size or to.startswith("?"):
        return size == 1
    return is_at_least(1, size) and is_at_least(size, minimum(to, 1))


def require_same(left: Size, right: Size, message: str, *parts: object) -> None:
    """Check that two sizes may be equal. Raises ValueError with `message.format(*parts)`. Kernels call it too."""
    if not may_be(left, right):
        raise ValueError(message.format(*parts))


def require_equal_numbers(left: Size, right: Size, message: str, *parts: object) -> None:
    """Check that two sizes are not known to differ. Raises ValueError with `message.format(*parts)`."""
    if differ(left, right):
        raise ValueError(message.format(*parts))


def require_at_most(size: Size, most: Size, message: str, *parts: object) -> None:
    """Check that `size` is not known to exceed `most`. Raises ValueError with `message.format(*parts)`. Kernels call it too."""
    if isinstance(size, int) and isinstance(most, int) and size > most:
        raise ValueError(message.format(*parts))


def require_filled(shape: Shape, wanted: Shape) -> None:
    """Check that two shapes may have the same number of elements. Raises ShapeError."""
    if differ(product(shape), product(wanted)):
        raise ShapeError(f"{product(shape)} elements do not fill {format_shape(wanted)}")


def filled_shape(shape: Shape, wanted: Shape) -> Shape:
    """Return the shape `wanted` with -1, if any, replaced by the size that follows from the elements of `shape`. Raises ShapeError."""
    total, known = product(shape), product(item for item in wanted if item != -1)
    negative = next((item for item in wanted if isinstance(item, int) and item < -1), None)
    if negative is not None:
        raise ShapeError(f"a size is {negative}, but sizes must be at least 0")
    if wanted.count(-1) > 1:
        raise ShapeError(f"only one size of {format_shape(wanted)} may be -1")
    unknown = next((item for item in wanted if item == -1 or isinstance(item, str)), None)
    if unknown is None:
        require_filled(shape, wanted)
        return tuple(wanted)
    if known == 0 and unknown != -1 and total == 0:
        return tuple(wanted)  # the symbols are determined by other shapes: see `registry/attributes.py`
    if known == 0:
        raise ShapeError(f"a size of {format_shape(wanted)} is 0, so {unknown} cannot be inferred")
    rest = divide(total, known)
    rest = divide(whole(total), whole(known)) if rest is None else rest
    if rest is None or (-1 not in wanted and rest != 1) or (isinstance(rest, int) and rest < 0):
        raise ShapeError(f"{total} elements do not fill {format_shape(wanted)}")
    return tuple(rest if item == -1 else item for item in wanted)


def require_broadcast(shape: Shape, to: Shape) -> None:
    """Check that `shape` may broadcast to `to`. Raises ShapeError."""
    pairs = zip(shape[::-1], to[::-1], strict=False)
    if len(shape) > len(to) or any(differ(size, 1) and differ(size, wanted) for size, wanted in pairs):
        raise ShapeError(f"{format_shape(shape)} does not broadcast to {format_shape(to)}")


def broadcast_shape(left: Shape, right: Shape) -> Shape:
    """Return the shape that two shapes broadcast to, by NumPy's rules. Raises ShapeError if they cannot."""
    rank = max(len(left), len(right))
    sizes: list[Size] = []
    for one, other in zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True):
        if gives_way(one, other) or gives_way(other, one):
            sizes.append(other if gives_way(one, other) else one)
            continue
        if one != 1 != other and not (
            may_be(one, other) or (isinstance(one, int) != isinstance(other, int) and may_be_broadcast(one, other))
        ):
            raise ShapeError(f"{format_shape(left)} and {format_shape(right)} do not broadcast: {one} and {other} are different sizes")
        sizes.append(other if one == 1 or (isinstance(other, int) and other != 1) else one)
    return tuple(sizes)


def require_axis(shape: Shape, axis: int, owner: str = "x", name: str = "axis") -> int:
    """Return an axis counted from the front; negative axes count from the back. Raises ShapeError if it is out of range."""
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{name} {axis} is not an axis of {owner}, which has {len(shape)} dimensions")
    return axis % len(shape)


def require_axes(shape: Shape, axes: int | Sequence[int] | None, owner: str = "x", name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front, sorted: one, several, or all for None. Raises ShapeError for no axes or a repeated one."""
    if axes is None:
        return tuple(range(len(shape)))
    found = sorted(require_axis(shape, axis, owner, name) for axis in ((axes,) if isinstance(axes, int) else axes))
    if not found or len(set(found)) < len(found):
        raise ShapeError(f"{name} {axes} names {'one axis twice' if found else 'no axis'}; None stands for all of them")
    return tuple(found)


def require_parts(shape: Shape, parts: Sequence[Shape], axis: int) -> Sequence[Shape]:
    """Check that `parts` may be concatenated to `shape` along `axis`, and return them. Raises ShapeError."""
    axis = require_axis(shape, axis)
    fit = all(len(part) == len(shape) and not any(map(differ, part[:axis], shape)) for part in parts)
    fit = fit and not any(differ(*pair) for part in parts for pair in zip(part[axis + 1 :], shape[axis + 1 :], strict=True))
    if not fit or differ(sum_of(part[axis] for part in parts), shape[axis]):
        raise ShapeError(f"the parts {', '.join(map(format_shape, parts))} do not add up to {format_shape(shape)} along axis {axis}")
    return parts


def require_numbered(numbers: Shape, count: Size, what: str) -> None:
    """Check that there is something to index if there are indexes. Raises ShapeError with `what` as the reason."""
    asked = product(numbers)
    if count == 0 and isinstance(asked, int) and asked:
        raise ShapeError(f"{asked} indexes are given, but {what}")


def count_windows(length: Size, window: Size, stride: int, padding: int, dilation: int = 1, *, ceil_mode: bool = False) -> Size:
    """Return the number of windows: ``(length + 2 padding - extent) // stride + 1``, where ``extent = dilation (window - 1) + 1``.

    With `ceil_mode`, a last window that extends beyond the end counts if it starts before the padding there. Raises ShapeError if no window
    fits.
    """
    if stride < 1 or padding < 0:
        raise ShapeError(f"stride {stride} must be at least 1 and padding {padding} at least 0")
    if dilation < 1 or max(stride, padding, dilation) > _MOST_STEPS:
        raise ShapeError(f"dilation {dilation} must be at least 1, and no step more than {_MOST_STEPS}")
    extent = add(multiply(add(window, -1), dilation), 1)
    room = add(add(length, 2 * padding), multiply(extent, -1))
    if ceil_mode:
        before_end = not isinstance(extent, int) or extent >= stride + padding
        room = add(room if before_end else add(length, padding - stride), stride - 1)
    if length == 0 or (isinstance(window, int) and window < 1) or (isinstance(room, int) and room < 0):
        raise ShapeError(f"a window of {extent} does not fit into {length} with padding {padding}")
    return add(floor_divide(room, stride), 1)


def range_within(whole: int, axis: int, start: int, stop: int | None, *, clip: bool = False) -> tuple[int, int]:
    """Return the start and length of a slice of an axis. Kernels call it too.

    Bounds out of range are clipped like Python's with `clip`; otherwise they raise ValueError.
    """
    if clip:
        first, end, _ = slice(start, stop).indices(whole)
        return first, max(end - first, 0)
    first, end = (value + whole if value < 0 else value for value in (start, whole if stop is None else stop))
    if not (0 <= first <= whole and 0 <= end <= whole):
        raise ValueError(f"axis {axis} has size {whole}, so {start} to {'its end' if stop is None else stop} is out of range")
    if first > end:
        raise ValueError(f"axis {axis} has size {whole}, so {start} to {stop} is not a valid range")
    return first, end - first


def slice_size(whole: Size, axis: int, start: int, stop: int | None, step: int | None = None, *, clip: bool = False) -> Size:
    """Return the size of a slice of an axis, taking every `step`-th element. Raises ValueError as `range_within` does."""
    if step is not None:
        if step < 1:
            raise ShapeError(f"step is {step}, but must be at least 1")
        length = slice_size(whole, axis, start, stop, clip=clip)
        return floor_divide(add(length, step - 1), step) if step > 1 else length
    if clip:
        first, end = _clipped(whole, start), whole if stop is None else _clipped(whole, stop)
        return maximum(add(end, multiply(first, -1)), 0)
    if isinstance(whole, int):
        return range_within(whole, axis, start, stop)[1]
    first, end = (add(whole, value) if value < 0 else value for value in (start, 0 if stop is None else stop))
    length = add(whole if stop is None else end, multiply(first, -1))
    if isinstance(length, int) and length < 0:
        raise ShapeError(f"axis {axis} has size {whole}, so {start} to {stop} is not a valid range")
    return length


def is_within(whole: Size, start: int, stop: int | None) -> bool:
    """Return whether a slice is provably within the axis, so that nothing is clipped."""
    first, end = _bound(whole, start), whole if stop is None else _bound(whole, stop)
    return all(is_at_least(*pair) for pair in ((first, 0), (end, first), (whole, end)))


def _bound(whole: Size, bound: int) -> Size:
    return add(whole, bound) if bound < 0 else bound


def _clipped(whole: Size, bound: int) -> Size:
    return maximum(add(whole, bound), 0) if bound < 0 else minimum(whole, bound)

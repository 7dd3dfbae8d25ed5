"""Tensors split along an axis of known size, and parts written into a tensor."""

from collections.abc import Sequence
from itertools import pairwise

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.along_axis import index_put
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, require_axis_of, squeeze, unsqueeze
from oarlock.op.manipulation import concat, slice_
from oarlock.op.told_shape import arange
from oarlock.registry.creator import describe_value

__all__ = ["chunk", "dsplit", "hsplit", "select_scatter", "slice_scatter", "tensor_split", "unbind", "vsplit"]


def _known_size(x: Var, axis: int, what: str) -> tuple[int, int]:
    """Return an axis, counted from 0, and its size. Raises ShapeError if there is no such axis, or its size is a symbol."""
    at = require_axis_of(x, axis, what)
    size = known_shape(x, what)[at]
    if isinstance(size, str):
        raise ShapeError(f"{what}: axis {axis} has the size {size}, which must be known", location=here(), given=[x.describe()])
    return at, int(size)


@composition
def unbind(x: Var, *, axis: int = 0) -> list[Var]:
    """The slices of ``x`` along ``axis``, without that axis."""
    axis, size = _known_size(x, axis, "unbind")
    return [squeeze(slice_(x, axis=axis, start=number, stop=number + 1), axis) for number in range(size)]


@composition
def chunk(x: Var, chunks: int, *, axis: int = 0) -> list[Var]:
    """At most ``chunks`` parts along ``axis``, of one size except for the last, which may be smaller."""
    axis, size = _known_size(x, axis, "chunk")
    if chunks < 1:
        raise ArgumentError(f"chunk: chunks must be at least 1, not {chunks}", location=here())
    step = max(1, -(-size // chunks))
    return [slice_(x, axis=axis, start=start, stop=min(start + step, size)) for start in range(0, max(size, 1), step)]


@composition
def tensor_split(x: Var, sections: int | Sequence[int], *, axis: int = 0) -> list[Var]:
    """Parts along ``axis``: ``sections`` of them, as even as possible with the longer ones first; or the parts between given indices.

    Indices are clipped, like the bounds of Python's slices.
    """
    axis, size = _known_size(x, axis, "tensor_split")
    if not isinstance(sections, int) and not (isinstance(sections, list | tuple) and all(isinstance(each, int) for each in sections)):
        raise ArgumentError(
            f"tensor_split: sections must be a number or a list of indices, not {describe_value(sections)}", location=here()
        )
    if isinstance(sections, int):
        if sections < 1:
            raise ArgumentError(f"tensor_split: sections must be at least 1, not {sections}", location=here())
        bounds = [number * (size // sections) + min(number, size % sections) for number in range(sections + 1)]
        return [slice_(x, axis=axis, start=start, stop=stop) for start, stop in pairwise(bounds)]
    cuts = [slice(start, stop).indices(size)[:2] for start, stop in pairwise([0, *sections, size])]
    return [slice_(x, axis=axis, start=start, stop=max(start, stop)) for start, stop in cuts]


def _even(x: Var, sections: int | Sequence[int], axis: int, what: str, rank: int) -> list[Var]:
    if len(known_shape(x, what)) < rank:
        raise ShapeError(f"{what}: x has {len(x.shape or ())} axes, but {rank} are needed", location=here(), given=[x.describe()])
    axis, size = _known_size(x, axis, what)
    if isinstance(sections, int) and (sections < 1 or size % sections):
        raise ShapeError(
            f"{what}: axis {axis} has the size {size}, which is not {sections} equal parts", location=here(), given=[x.describe()]
        )
    return tensor_split(x, sections, axis=axis)


@composition
def hsplit(x: Var, sections: int | Sequence[int]) -> list[Var]:
    """Equal parts, or parts between indices, along axis 1, or along axis 0 if there is only one."""
    return _even(x, sections, 0 if len(known_shape(x, "hsplit")) == 1 else 1, "hsplit", 1)


@composition
def vsplit(x: Var, sections: int | Sequence[int]) -> list[Var]:
    """Equal parts, or parts between indices, along axis 0 of at least two."""
    return _even(x, sections, 0, "vsplit", 2)


@composition
def dsplit(x: Var, sections: int | Sequence[int]) -> list[Var]:
    """Equal parts, or parts between indices, along axis 2."""
    return _even(x, sections, 2, "dsplit", 3)


@composition
def select_scatter(x: Var, values: Var, *, axis: int, index: int) -> Var:
    """``x`` with ``values``, T[...s without the axis], in place of the element ``index`` along ``axis``."""
    axis, size = _known_size(x, axis, "select_scatter")
    if not -size <= index < size:
        raise ShapeError(
            f"select_scatter: index {index} is out of range for an axis of the size {size}", location=here(), given=[x.describe()]
        )
    return slice_scatter(x, unsqueeze(values, axis), axis=axis, start=index % size, stop=index % size + 1)


@composition
def slice_scatter(x: Var, values: Var, *, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1) -> Var:
    """``x`` with ``values`` in place of a slice along ``axis``; bounds are clipped, as in Python."""
    axis, size = _known_size(x, axis, "slice_scatter")
    if step < 1:
        raise ArgumentError(f"slice_scatter: step must be at least 1, not {step}", location=here())
    places = range(*slice(start, stop, step).indices(size))
    shape = known_shape(x, "slice_scatter")
    wanted = (*shape[:axis], len(places), *shape[axis + 1 :])
    if known_shape(values, "slice_scatter") != wanted:
        raise ShapeError(
            f"slice_scatter: values do not fill the slice, {list(wanted)}", location=here(), given=[x.describe(), values.describe()]
        )
    if not places:
        return x
    if step == 1:
        around = [slice_(x, axis=axis, stop=places.start), values, slice_(x, axis=axis, start=places.stop)]
        return concat(around, axis=axis)
    numbers = arange([], start=(places.start,), stop=(places.stop,), step=step)
    return index_put(x, values, [numbers], axes=(axis,))

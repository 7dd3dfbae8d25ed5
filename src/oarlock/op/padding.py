"""Padding and cropping at the ends of axes."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.size import add
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.images import PAD_MODES, padded_by_places, padded_with_value, require_room, summed_at_places

__all__ = ["pad"]


@operator(
    "x: T[...s] -> y: T[...t]",
    cases=[
        Case(x=[[1.0, 2.0]], before=(1,), after=(2,), value=9.0, y=[[9.0, 1.0, 2.0, 9.0, 9.0]]),
        Case(x=[[1, 2, 3], [4, 5, 6]], before=(1, -1), after=(0, 0), y=[[0, 0], [2, 3], [5, 6]]),
        Case(x=[1.0, 2.0, 3.0], before=(2,), after=(1,), mode="reflect", y=[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]),
        Case(x=[1.0, 2.0, 3.0], before=(2,), after=(-1,), mode="replicate", y=[1.0, 1.0, 1.0, 2.0]),
        Case(x=[True, False, False], before=(1,), after=(1,), mode="circular", y=[False, True, False, False, True]),
        GradCheck(x=(2, 3), before=(1, -1), after=(-1, 2), value=0.5),
        *(GradCheck(x=(2, 3, 2), before=(2, -1), after=(1, 3), mode=mode) for mode in ("reflect", "replicate", "circular")),
        Rejects("before and after need one number each for some of the last axes", x=(2,), before=(1, 1), after=(1, 1)),
        Rejects("an axis of size 2 cannot lose 2 elements before and 1 after", x=(2,), before=(-2,), after=(-1,)),
        Rejects("an axis of size 0 has no element left to pad with", x=(0,), before=(1,), after=(0,), mode="replicate"),
        Rejects("mode must be one of constant, reflect, replicate, circular, not 'mirror'", x=(2,), before=(1,), after=(1,), mode="mirror"),
        Rejects("value 0.5 is not of the dtype int64", x=[1, 2], before=(1,), after=(1,), value=0.5),
    ],
)
def pad(x, *, before: tuple[int, ...], after: tuple[int, ...], mode: str = "constant", value: float = 0.0):
    """Pad the last axes with ``before`` and ``after`` elements, one number per axis; negative numbers crop.

    The new elements are ``value``, or elements of the axis: mirrored at its ends (``"reflect"``), the nearest (``"replicate"``), or
    repeated periodically (``"circular"``).
    """
    require_room(x.shape, before, after, mode)
    return padded_with_value(x, before, after, value) if mode == "constant" else padded_by_places(x, before, after, mode)


@pad.infer_shape
def padded_shape(x, *, before, after, mode, value):
    if mode not in PAD_MODES:
        raise ArgumentError(f"mode must be one of {', '.join(PAD_MODES)}, not {mode!r:.40}")
    if not len(before) == len(after) <= len(x.shape) or not before:
        raise ShapeError("before and after need one number each for some of the last axes")
    if not x.dtype.is_inexact and not float(value).is_integer():
        raise ArgumentError(f"value {value} is not of the dtype {x.dtype}")
    require_room(x.shape, before, after, mode)
    first = len(x.shape) - len(before)
    ends = zip(x.shape[first:], before, after, strict=True)
    return (*x.shape[:first], *(add(length, start + stop) for length, start, stop in ends))


@pad.gradient("x")
def pad_dx(dy, x_shape, *, before, after, mode):
    """The sum of ``dy`` over all positions of an element."""
    if mode == "constant":
        return padded_with_value(dy, [-number for number in before], [-number for number in after], 0.0)
    return summed_at_places(dy, x_shape, before, after, mode)


pad_dx.gradient_programs(dy=lambda ddx, *, before, after, mode: pad(ddx, before=before, after=after, mode=mode))

"""Line search with the strong Wolfe conditions, as a loop of the program."""

from collections.abc import Callable
from typing import NamedTuple

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.layer.control.while_loop import while_loop
from oarlock.op.choice import maximum, minimum, where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.elementwise import assign
from oarlock.op.extremes import amax
from oarlock.op.magnitude import abs_
from oarlock.op.matrix import dot
from oarlock.op.unary import sqrt

__all__ = ["Point", "search_line"]

_DECREASE = 1e-4  # c1: minimum decrease, as a fraction of that predicted by the slope
_CURVATURE = 0.9  # c2: maximum remaining slope, as a fraction of the initial one


class Point(NamedTuple):
    """A point on the line: length along the direction, cost, gradient, and slope along the direction."""

    length: Var
    cost: Var
    gradient: Var
    slope: Var


def search_line(
    evaluate: Callable[[Var], tuple[Var, Var]],
    start: Point,
    direction: Var,
    length: Var,
    *,
    most: Var,
    tolerance: float,
    when: Var,
) -> tuple[Point, Var]:
    """Append the search from `start` with initial step `length`; return the point found and the number of evaluations.

    It satisfies ``f(t) <= f(0) + 1e-4 t f'(0)`` and ``abs(f'(t)) <= 0.9 abs(f'(0))``, unless the search ends early: after `most` + 1
    evaluations, or when the bracket is smaller than `tolerance`. Lengths first grow until a bracket contains such a point; the bracket is
    then shrunk around its lower end by cubic interpolation (Nocedal and Wright, 2006, algorithms 3.5 and 3.6; with the safeguards of
    `torch.optim.LBFGS`). If `when`, bool[], is false, nothing is evaluated and the point is `start`.
    """
    previous, first, second = (Point(*map(assign, start)) for _ in range(3))
    length, trip, no, yes = assign(length), full(shape=(), value=0.0, dtype=DType.INT64), _bool(False), _bool(True)
    zooming, hesitant, first_is_low = assign(no), assign(no), assign(yes)
    loop = while_loop(when)
    with loop.block():
        cost, gradient = evaluate(length)
        new = Point(length, cost, gradient, dot(gradient, direction))
        is_out = ~zooming & (trip >= most)
        is_high = cost > start.cost + _DECREASE * length * start.slope
        is_flat = abs_(new.slope) <= -_CURVATURE * start.slope
        # Before there is a bracket
        is_past = is_high | ((trip > 1) & (cost >= previous.cost))
        is_found = ~zooming & ~is_out & ~is_past & is_flat
        brackets = ~zooming & ~is_out & (is_past | (~is_flat & (new.slope >= 0.0)))
        # Within the bracket
        low, high = _choose(first_is_low, first, second), _choose(first_is_low, second, first)
        is_worse = is_high | (cost >= low.cost)
        turns = ~is_worse & ~is_flat & (new.slope * (high.length - low.length) >= 0.0)
        next_high = _choose(is_worse, new, _choose(turns, low, high))
        next_low = _choose(is_worse, low, new)
        zoomed = _choose(first_is_low, next_low, next_high), _choose(first_is_low, next_high, next_low)
        begun = _choose(brackets, previous, _choose(is_out, start, new)), new
        next_first, next_second = (_choose(zooming, inside, outside) for inside, outside in zip(zoomed, begun, strict=True))
        is_ordered = next_first.cost <= next_second.cost
        next_first_is_low = where(zooming & ~is_worse, first_is_low, where(is_found, yes, is_ordered))
        # The next trial
        next_zooming = zooming | brackets
        is_done = is_out | is_found | (zooming & ~is_worse & is_flat)
        is_small = abs_(next_second.length - next_first.length) * amax(abs_(direction)) < tolerance
        trial, is_near = _trial(next_first, next_second, hesitant)
        longer = _cubic(previous, new, length + 0.01 * (length - previous.length), 10.0 * length)
        carried = {
            length: where(next_zooming, trial, longer),
            trip: trip + 1,
            zooming: next_zooming,
            hesitant: where(next_zooming, is_near, hesitant),
            first_is_low: next_first_is_low,
            **dict(zip(previous, (assign(value) for value in new), strict=True)),
            **dict(zip(first, next_first, strict=True)),
            **dict(zip(second, next_second, strict=True)),
        }
        for var, value in carried.items():
            loop.carry(var, value)
        loop.update_condition(~is_done & (trip < most) & ~(next_zooming & is_small))
    results = loop()
    assert isinstance(results, tuple)
    last = dict(zip(carried, results, strict=True))
    ends = (Point(*(last[value] for value in point)) for point in (first, second))
    return _choose(last[first_is_low], *ends), last[trip]


def _trial(first: Point, second: Point, hesitant: Var) -> tuple[Var, Var]:
    """Return a length inside a bracket, and whether it is so close to an end that the next one must not be."""
    bottom, top = minimum(first.length, second.length), maximum(first.length, second.length)
    length = _cubic(first, second, bottom, top)
    margin = 0.1 * (top - bottom)
    is_near = minimum(top - length, length - bottom) < margin
    is_moved = is_near & (hesitant | (length >= top) | (length <= bottom))
    inward = where(abs_(length - top) < abs_(length - bottom), top - margin, bottom + margin)
    return where(is_moved, inward, length), is_near & ~is_moved


def _cubic(one: Point, other: Point, bottom: Var, top: Var) -> Var:
    """Return the minimum of the cubic through two points with these costs and slopes, clipped to `bottom` and `top`, else the midpoint."""
    is_sorted = one.length <= other.length
    left, right = _choose(is_sorted, one, other), _choose(is_sorted, other, one)
    d1 = left.slope + right.slope - 3.0 * (left.cost - right.cost) / (left.length - right.length)
    squared = d1 * d1 - left.slope * right.slope
    d2 = sqrt(maximum(squared, constant_like(0.0, squared)))
    lowest = right.length - (right.length - left.length) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2.0 * d2))
    return where(squared >= 0.0, minimum(maximum(lowest, bottom), top), (bottom + top) / 2.0)


def _choose(condition: Var, one: Point, other: Point) -> Point:
    return Point(*(where(condition, left, right) for left, right in zip(one, other, strict=True)))


def _bool(value: bool) -> Var:
    return full(shape=(), value=float(value), dtype=DType.BOOL)

"""Arithmetic with broadcasting, comparisons, logic and bitwise operations."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.reduction import Axes, axes_of, sum_to
from oarlock.ir.dtype import DType

for ours, theirs in {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "minimum": "Min",
    "maximum": "Max",
    "power": "Pow",
}.items():
    export(ours)(lambda g, x, y, theirs=theirs: g(theirs, x, y))

export("neg")(lambda g, x: g("Neg", x))
export("assign", "optimization_barrier", "stop_gradient")(lambda g, x: x)
export("move")(lambda g, x, *, place: x)
export("addcmul")(lambda g, base, x, y, *, subtracted: g("Sub" if subtracted else "Add", base, g("Mul", x, y)))


@export("where")
def where(g: Graph, condition: Value, x: Value, y: Value) -> str:
    """Select by a condition. Bools use logic, as ONNX Runtime's Where does not support them."""
    if x.dtype is DType.BOOL:
        return g("Or", g("And", condition, x), g("And", g("Not", condition), y))
    return g("Where", condition, x, y)


@export("lerp")
def lerp(g: Graph, start: Value, end: Value, weight: Value) -> str:
    """Interpolate from the nearer end, so that both ends are exact."""
    whole, one = g("Sub", end, start), g.scalar(1, start.dtype)
    near = g("Less", g("Abs", weight), g.scalar(0.5, start.dtype))
    from_end = g("Sub", end, g("Mul", whole, g("Sub", one, weight)))
    return g("Where", near, g("Add", start, g("Mul", weight, whole)), from_end)


@export("sum")
def sum_(g: Graph, xs: list[Value]) -> str:
    total = xs[0].name
    for x in xs[1:]:
        total = g("Add", total, x)
    return total


def needs_divisor_sign(g: Graph, rest: str, y: Value) -> str:
    """Return whether a remainder with the sign of the dividend needs the sign of the divisor: bool."""
    zero = g.scalar(0, y.dtype)
    differs = g("Xor", g("Less", rest, zero), g("Less", y, zero))
    return g("And", g("Not", g("Equal", rest, zero)), differs)


@export("floor_divide")
def floor_divide(g: Graph, x: Value, y: Value) -> str:
    """Divide, rounding down. ONNX's integer Div rounds towards zero, so the remainder is subtracted first."""
    if x.dtype.is_integer:
        return g("Div", g("Sub", x, g("Mod", x, y)), y)
    rest = g("Mod", x, y, fmod=1)
    quotient = g("Div", g("Sub", x, rest), y)
    quotient = g("Where", needs_divisor_sign(g, rest, y), g("Sub", quotient, g.scalar(1, x.dtype)), quotient)
    return g("Where", g("Equal", y, g.scalar(0, y.dtype)), g("Div", x, y), g("Floor", g("Add", quotient, g.scalar(0.5, x.dtype))))


@export("remainder")
def remainder(g: Graph, x: Value, y: Value) -> str:
    if x.dtype.is_integer:
        return g("Mod", x, y)
    rest = g("Mod", x, y, fmod=1)
    return g("Where", needs_divisor_sign(g, rest, y), g("Add", rest, y), rest)


export("fmod")(lambda g, x, y: g("Mod", x, y, fmod=1))


@export("clip")
def clip(g: Graph, x: Value, lower: Value | None = None, upper: Value | None = None) -> str:
    y = x.name
    if lower is not None:
        y = g("Max", y, lower)
    return y if upper is None else g("Min", y, upper)


def _within_bounds(g: Graph, x: Value, lower: Value | None, upper: Value | None) -> str | None:
    """Return whether x is within the bounds, inclusive: bool; None without bounds."""
    parts = [g("GreaterOrEqual", x, lower)] if lower is not None else []
    parts += [g("LessOrEqual", x, upper)] if upper is not None else []
    return g("And", *parts) if len(parts) == 2 else parts[0] if parts else None


@export("clip_dx")
def clip_dx(g: Graph, x: Value, dy: Value, lower: Value | None = None, upper: Value | None = None) -> str:
    inside = _within_bounds(g, x, lower, upper)
    dx = dy.name if inside is None else g("Where", inside, dy, g.scalar(0, dy.dtype))
    return sum_to(g, Value(dx, dy.dtype, dy.shape), x)


@export("clip_dx_ddy")
def clip_dx_ddy(g: Graph, x: Value, ddx: Value, dy: Value, lower: Value | None = None, upper: Value | None = None) -> str:
    inside = _within_bounds(g, x, lower, upper)
    through = ddx.name if inside is None else g("Where", inside, ddx, g.scalar(0, ddx.dtype))
    return g("Expand", through, g.shape(dy))


def _below(g: Graph, x: Value, lower: Value, upper: Value | None) -> str:
    below = g("Less", x, lower)
    return below if upper is None else g("And", below, g("Less", lower, upper))


def _above(g: Graph, x: Value, upper: Value, lower: Value | None) -> str:
    above = g("Greater", x, upper)
    return above if lower is None else g("Or", above, g("Less", upper, lower))


@export("clip_dlower")
def clip_dlower(g: Graph, x: Value, lower: Value, dy: Value, upper: Value | None = None) -> str:
    return _gradient_of_bound(g, _below(g, x, lower, upper), dy, lower)


@export("clip_dupper")
def clip_dupper(g: Graph, x: Value, upper: Value, dy: Value, lower: Value | None = None) -> str:
    return _gradient_of_bound(g, _above(g, x, upper, lower), dy, upper)


def _gradient_of_bound(g: Graph, chosen: str, dy: Value, bound: Value) -> str:
    return sum_to(g, Value(g("Where", chosen, dy, g.scalar(0, dy.dtype)), dy.dtype, dy.shape), bound)


@export("clip_dlower_ddy")
def clip_dlower_ddy(g: Graph, x: Value, lower: Value, ddlower: Value, dy: Value, upper: Value | None = None) -> str:
    return g("Expand", g("Where", _below(g, x, lower, upper), ddlower, g.scalar(0, ddlower.dtype)), g.shape(dy))


@export("clip_dupper_ddy")
def clip_dupper_ddy(g: Graph, x: Value, upper: Value, ddupper: Value, dy: Value, lower: Value | None = None) -> str:
    return g("Expand", g("Where", _above(g, x, upper, lower), ddupper, g.scalar(0, ddupper.dtype)), g.shape(dy))


# Comparisons, logic and bits


for ours, theirs in {
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "equal": "Equal",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
}.items():
    export(ours)(lambda g, x, y, theirs=theirs: g(theirs, x, y))

export("not_equal")(lambda g, x, y: g("Not", g("Equal", x, y)))
export("logical_not")(lambda g, x: g("Not", x))


@export("any")
def any_(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False) -> str:
    """Return whether any element is true, as a sum, which is 0 for no elements."""
    found = g.reduce("ReduceSum", g.cast(x, DType.INT64), axes_of(axis, x.rank), keepdim=keepdim)
    return g.cast(found, DType.BOOL)


@export("all")
def all_(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False) -> str:
    """Return whether all elements are true."""
    wrong = g.reduce("ReduceSum", g.cast(g("Not", x), DType.INT64), axes_of(axis, x.rank), keepdim=keepdim)
    return g("Not", g.cast(wrong, DType.BOOL))


for ours, theirs, of_bools in (
    ("bitwise_and", "BitwiseAnd", "And"),
    ("bitwise_or", "BitwiseOr", "Or"),
    ("bitwise_xor", "BitwiseXor", "Xor"),
):

    @export(ours)
    def bitwise(g: Graph, x: Value, y: Value, *, theirs: str = theirs, of_bools: str = of_bools) -> str:
        if x.dtype is DType.BOOL:
            return g(of_bools, x, y)
        g.require_opset(18, theirs)
        return g(theirs, x, y)


@export("bitwise_not")
def bitwise_not(g: Graph, x: Value) -> str:
    """Invert all bits; ``-1 - x`` for signed integers."""
    if x.dtype is DType.BOOL:
        return g("Not", x)
    return g("Sub", g.scalar(255 if x.dtype is DType.UINT8 else -1, x.dtype), x)


def _valid_shift(g: Graph, x: Value, y: Value) -> tuple[str, str]:
    """Return whether ``y`` is a valid shift of ``x``, and the shift as uint64, 0 if it is invalid."""
    bits = 8 * x.dtype.itemsize
    inside = g("And", g("GreaterOrEqual", y, g.scalar(0, y.dtype)), g("Less", y, g.scalar(bits, y.dtype)))
    return inside, g("Cast", g("Where", inside, y, g.scalar(0, y.dtype)), to=_UINT64)


@export("bitwise_left_shift")
def bitwise_left_shift(g: Graph, x: Value, y: Value) -> str:
    """Shift left. BitShift only supports unsigned integers, but for left shifts the sign is irrelevant."""
    inside, count = _valid_shift(g, x, y)
    moved = g.cast(g("BitShift", g("Cast", x, to=_UINT64), count, direction="LEFT"), x.dtype)
    return g("Where", inside, moved, g.scalar(0, x.dtype))


@export("bitwise_right_shift")
def bitwise_right_shift(g: Graph, x: Value, y: Value) -> str:
    """Shift right. Negative numbers are shifted as ``-1 - x``, whose bits are inverted."""
    inside, count = _valid_shift(g, x, y)
    negative = g("Less", x, g.scalar(0, x.dtype))
    minus_one = g.scalar(255 if x.dtype is DType.UINT8 else -1, x.dtype)
    held = g("Where", negative, g("Sub", minus_one, x), x)
    moved = g.cast(g("BitShift", g("Cast", held, to=_UINT64), count, direction="RIGHT"), x.dtype)
    moved = g("Where", inside, moved, g.scalar(0, x.dtype))
    return g("Where", negative, g("Sub", minus_one, moved), moved)


_UINT64 = 13

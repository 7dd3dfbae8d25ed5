"""Comparisons, logic and bitwise operations."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.reduction import Axes, axes_of
from oarlock.ir.dtype import DType

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


def _within(g: Graph, x: Value, y: Value) -> tuple[str, str]:
    """Return whether ``y`` is a valid shift of ``x``, and the shift as uint64, 0 if it is invalid."""
    bits = 8 * x.dtype.itemsize
    inside = g("And", g("GreaterOrEqual", y, g.scalar(0, y.dtype)), g("Less", y, g.scalar(bits, y.dtype)))
    return inside, g("Cast", g("Where", inside, y, g.scalar(0, y.dtype)), to=_UINT64)


@export("bitwise_left_shift")
def bitwise_left_shift(g: Graph, x: Value, y: Value) -> str:
    """Shift left. BitShift only supports unsigned integers, but for left shifts the sign is irrelevant."""
    inside, count = _within(g, x, y)
    moved = g.cast(g("BitShift", g("Cast", x, to=_UINT64), count, direction="LEFT"), x.dtype)
    return g("Where", inside, moved, g.scalar(0, x.dtype))


@export("bitwise_right_shift")
def bitwise_right_shift(g: Graph, x: Value, y: Value) -> str:
    """Shift right. Negative numbers are shifted as ``-1 - x``, whose bits are inverted."""
    inside, count = _within(g, x, y)
    negative = g("Less", x, g.scalar(0, x.dtype))
    minus_one = g.scalar(255 if x.dtype is DType.UINT8 else -1, x.dtype)
    held = g("Where", negative, g("Sub", minus_one, x), x)
    moved = g.cast(g("BitShift", g("Cast", held, to=_UINT64), count, direction="RIGHT"), x.dtype)
    moved = g("Where", inside, moved, g.scalar(0, x.dtype))
    return g("Where", negative, g("Sub", minus_one, moved), moved)


_UINT64 = 13

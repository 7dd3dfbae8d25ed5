"""Random numbers: Oarlock's stream in integer arithmetic, from a key input for each op."""

import math

import numpy

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import Size

__all__ = ["TRIP", "draw_path", "key_name", "uniform"]

TRIP = "*"
_LOOPS = ("recurrent", "while")
_UINT64 = 13


def key_name(random_id: int) -> str:
    """Return the name of the input for the key of a random op."""
    return f"random_{random_id}@KEY"


def draw_path(op: Op) -> tuple[str, ...]:
    """Return the path of an op as in its key: the blocks and loops around it, innermost first. TRIP precedes the name of a loop."""
    found: list[str] = []
    for block in op.block.enclosing():
        loop = block.parent is not None and any(block in owner.blocks and owner.type in _LOOPS for owner in block.parent.ops)
        found += [TRIP, block.name.partition(".")[0]] if loop else [block.name]
    return tuple(found)


def _key(g: Graph, random_id: int) -> str:
    """Return the key of an op, int64[]: an input of the graph; in loops, an element of an input with keys by iteration, outermost first."""
    name, steps = key_name(random_id), list(g.steps())
    if all(value.name != name for value in g.shared.inputs):
        g.shared.taken.add(name)
        g.shared.inputs.append(Value(name, DType.INT64, tuple(f"{name}_trips_{level}" for level in range(len(steps)))))
    for step in reversed(steps):
        name = g("Gather", name, step, axis=0)
    return name


def uniform(g: Graph, count: str, random_id: int) -> str:
    """Return `count` numbers in [0, 1), float64[count]: splitmix64 from the key, as in `runtime/random.py`. `count` is int64[]."""
    g.require_opset(18, "BitwiseXor, which random numbers are computed with,")
    index = g("Range", g.ints(1), g("Add", count, g.ints(1)), g.ints(1))
    x = g("Add", g("Mul", index, _constant(g, 0x9E3779B97F4A7C15)), _key(g, random_id))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, None)):
        x = g("BitwiseXor", x, _shift_right(g, x, shift))
        x = x if factor is None else g("Mul", x, _constant(g, factor))
    return g("Mul", g("Cast", _shift_right(g, x, 11), to=11), g.scalar(2.0**-53, DType.FLOAT64))


def _constant(g: Graph, number: int) -> str:
    return g.constant(numpy.array(number, dtype=numpy.uint64).astype(numpy.int64))


def _shift_right(g: Graph, x: str, bits: int) -> str:
    """Shift right, filling with zeros."""
    moved = g("BitShift", g("Cast", x, to=_UINT64), g.constant(numpy.array(bits, dtype=numpy.uint64)), direction="RIGHT")
    return g("Cast", moved, to=7)


def _require_all_rows(*numbers: Value | int) -> None:
    """Raise Unsupported for the rows of a single worker."""
    if any(number != 0 for number in numbers):
        raise Unsupported("the rows of a single worker cannot be exported")


@export("dropout")
def dropout(g: Graph, x: Value, *, rate: Value | float, first_row: Value | int = 0, random_id: int) -> tuple[str, str]:
    shape = g.shape(x)
    if not g.training:
        return x.name, g.filled(1, x.dtype, shape)
    _require_all_rows(first_row)
    drawn = g.reshape(uniform(g, g.count(x.sizes), random_id), shape)
    share = g.cast(rate, DType.FLOAT64) if isinstance(rate, Value) else g.scalar(rate, DType.FLOAT64)
    kept = g("GreaterOrEqual", drawn, share)
    none = g("GreaterOrEqual", share, g.scalar(1, DType.FLOAT64))  # avoids division by zero for a rate of 1
    whole = g.cast(g("Where", none, g.scalar(1, DType.FLOAT64), g("Sub", g.scalar(1, DType.FLOAT64), share)), x.dtype)
    mask = g("Div", g.cast(kept, x.dtype), whole)
    return g("Mul", x, mask), mask


def _shape_of(g: Graph, shape: Value | tuple[Size, ...]) -> str:
    """Return a shape from an attribute or a variable: int64[rank]."""
    return shape.name if isinstance(shape, Value) else g.dims(shape)


def _uniform(g: Graph, shape: str, low: float, high: float, dtype: DType, random_id: int) -> str:
    drawn = g.reshape(uniform(g, g("ReduceProd", shape, keepdims=0), random_id), shape)
    spread = g("Mul", drawn, g.scalar(high - low, DType.FLOAT64))
    return g.cast(g("Add", spread, g.scalar(low, DType.FLOAT64)), dtype)


@export("random_uniform")
def random_uniform(g: Graph, *, shape: Value | tuple[Size, ...], low: float = 0.0, high: float = 1.0, dtype: DType, random_id: int) -> str:
    return _uniform(g, _shape_of(g, shape), low, high, dtype, random_id)


@export("random_uniform_like")
def random_uniform_like(g: Graph, like: Value, *, low: float, high: float, dtype: DType, first_row: Value | int = 0, random_id: int) -> str:
    _require_all_rows(first_row)
    return _uniform(g, g.shape(like), low, high, dtype, random_id)


def _normal(g: Graph, shape: str, mean: float, deviation: float, dtype: DType, random_id: int) -> str:
    """Draw normal numbers: radius and angle from two consecutive streams (Box and Muller, 1958)."""
    of, whole = DType.FLOAT64, g("Concat", g.ints([2]), shape, axis=0)
    drawn = g.reshape(uniform(g, g("ReduceProd", whole, keepdims=0), random_id), whole)
    radius, angle = (g("Gather", drawn, g.ints(number), axis=0) for number in (0, 1))
    root = g("Sqrt", g("Mul", g.scalar(-2.0, of), g("Log", g("Sub", g.scalar(1.0, of), radius))))
    standard = g("Mul", root, g("Cos", g("Mul", g.scalar(2.0 * math.pi, of), angle)))
    return g.cast(g("Add", g("Mul", standard, g.scalar(deviation, of)), g.scalar(mean, of)), dtype)


@export("random_normal")
def random_normal(
    g: Graph, *, shape: Value | tuple[Size, ...], mean: float = 0.0, deviation: float = 1.0, dtype: DType, random_id: int
) -> str:
    return _normal(g, _shape_of(g, shape), mean, deviation, dtype, random_id)


@export("random_normal_like")
def random_normal_like(
    g: Graph,
    like: Value,
    *,
    mean: float,
    deviation: float,
    dtype: DType,
    first_row: Value | int = 0,
    all_rows: Value | int = 0,
    random_id: int,
) -> str:
    _require_all_rows(first_row, all_rows)
    return _normal(g, g.shape(like), mean, deviation, dtype, random_id)


@export("bernoulli")
def bernoulli(g: Graph, probability: Value, *, first_row: Value | int = 0, random_id: int) -> str:
    _require_all_rows(first_row)
    drawn = g.reshape(uniform(g, g.count(probability.sizes), random_id), g.shape(probability))
    return g.cast(g("Less", drawn, g.cast(probability, DType.FLOAT64)), probability.dtype)


export("dropout_dx")(lambda g, mask, dy: g("Mul", dy, mask))

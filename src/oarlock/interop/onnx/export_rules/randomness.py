"""Random numbers: our own stream, written in integers, from a key that is fed for each op."""

import numpy

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

__all__ = ["key_name", "uniform"]

_UINT64 = 13


def key_name(random_id: int) -> str:
    """The input that a random op is told by which numbers to draw."""
    return f"random_{random_id}@KEY"


def _key(g: Graph, random_id: int) -> str:
    """The key of an op: an input of the graph, int64[]."""
    name = key_name(random_id)
    if all(value.name != name for value in g.shared.inputs):
        g.shared.taken.add(name)
        g.shared.inputs.append(Value(name, DType.INT64, ()))
    return name


def uniform(g: Graph, count: str, random_id: int) -> str:
    """As many numbers in [0, 1), float64[count], as int64[] says: splitmix64 at the key, bit for bit what `runtime/random.py` draws."""
    g.require_opset(18, "BitwiseXor, by which random numbers are drawn,")
    index = g("Range", g.ints(1), g("Add", count, g.ints(1)), g.ints(1))
    x = g("Add", g("Mul", index, _odd(g, 0x9E3779B97F4A7C15)), _key(g, random_id))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, None)):
        x = g("BitwiseXor", x, _shifted(g, x, shift))
        x = x if factor is None else g("Mul", x, _odd(g, factor))
    return g("Mul", g("Cast", _shifted(g, x, 11), to=11), g.scalar(2.0**-53, DType.FLOAT64))


def _odd(g: Graph, number: int) -> str:
    return g.constant(numpy.array(number, dtype=numpy.uint64).astype(numpy.int64))


def _shifted(g: Graph, x: str, bits: int) -> str:
    """To the right, with zeros shifted in."""
    moved = g("BitShift", g("Cast", x, to=_UINT64), g.constant(numpy.array(bits, dtype=numpy.uint64)), direction="RIGHT")
    return g("Cast", moved, to=7)


@export("dropout")
def dropout(g: Graph, x: Value, *, rate: Value | float, random_id: int) -> tuple[str, str]:
    shape = g.shape(x)
    if not g.training:
        return x.name, g.filled(1, x.dtype, shape)
    drawn = g.reshape(uniform(g, g.count(x.sizes), random_id), shape)
    share = g.cast(rate, DType.FLOAT64) if isinstance(rate, Value) else g.scalar(rate, DType.FLOAT64)
    kept = g("GreaterOrEqual", drawn, share)
    none = g("GreaterOrEqual", share, g.scalar(1, DType.FLOAT64))  # a rate of 1 divides by nothing
    whole = g.cast(g("Where", none, g.scalar(1, DType.FLOAT64), g("Sub", g.scalar(1, DType.FLOAT64), share)), x.dtype)
    mask = g("Div", g.cast(kept, x.dtype), whole)
    return g("Mul", x, mask), mask


export("dropout_dx")(lambda g, mask, dy: g("Mul", dy, mask))

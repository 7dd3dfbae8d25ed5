"""How many multiply-adds an op takes: those of products, convolutions and attention, beside which nothing else counts."""

from collections.abc import Callable, Mapping

from oarlock.errors import OarlockError
from oarlock.ir.operation import Op
from oarlock.ir.size import Shape, Size, add, multiply, product

__all__ = ["find_multiply_adds"]

Shapes = Mapping[str, Shape]


def find_multiply_adds(op: Op) -> Size | None:
    """The multiply-adds of one op, as far as the shapes of its variables tell them; 0 where it is none that counts, None where nothing
    tells.

    An op with blocks takes what these take, and counts as 0 by itself.
    """
    rule = _RULES.get(op.type)
    if rule is None:
        return 0
    shapes: dict[str, Shape] = {}
    for slot, vars in [*op.inputs.items(), *op.outputs.items()]:
        if len(vars) == 1 and vars[0].shape is not None:
            shapes[slot] = vars[0].shape
    try:
        return rule(shapes)
    except (KeyError, IndexError, ValueError, OarlockError):  # a shape that nobody knows, or a program of a stranger's that does not fit
        return None


def _linear(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), shapes["w"][1])


def _matmul(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), shapes["y"][-1])


def _convolution(shapes: Shapes) -> Size:
    return multiply(product(shapes["y"]), product(shapes["filter"][1:]))


def _transposed(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), product(shapes["filter"][1:]))


def _attention(shapes: Shapes) -> Size:
    """Of scores, and of values: heads only share out the columns."""
    queries, key, value = shapes["query"], shapes["key"], shapes["value"]
    return multiply(multiply(product(queries[:-1]), key[-2]), add(queries[-1], value[-1]))


_RULES: dict[str, Callable[[Shapes], Size]] = {
    "linear": _linear,
    "matmul": _matmul,
    "dot": lambda shapes: product(shapes["x"]),
    "scaled_dot_product_attention": _attention,
    **{f"conv{axes}d": _convolution for axes in (1, 2, 3)},
    **{f"conv_transpose{axes}d": _transposed for axes in (1, 2, 3)},
}

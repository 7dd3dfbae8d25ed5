"""Multiply-adds of ops: only products, convolutions and attention are counted."""

from collections.abc import Callable, Mapping

from oarlock.errors import OarlockError
from oarlock.ir.operation import Op
from oarlock.ir.size import Shape, Size, add, multiply, product

__all__ = ["count_multiply_adds", "find_multiply_adds"]

Shapes = Mapping[str, Shape]


def find_multiply_adds(op: Op) -> Size | None:
    """Return the multiply-adds of one op: 0 if its operator is not counted, None if its shapes do not determine them.

    An op with blocks counts as 0; the ops in its blocks are counted on their own.
    """
    shapes: dict[str, Shape] = {}
    for slot, vars in [*op.inputs.items(), *op.outputs.items()]:
        if len(vars) == 1 and vars[0].shape is not None:
            shapes[slot] = vars[0].shape
    return count_multiply_adds(op.type, shapes)


def count_multiply_adds(type: str, shapes: Shapes) -> Size | None:
    """Return the multiply-adds of an operator with the given shapes of its slots; covers gradients and fused operators too."""
    rule = _RULES.get(type)
    if rule is None:
        return 0
    try:
        return rule(shapes)
    except (KeyError, IndexError, ValueError, OarlockError):  # an unknown shape, or an invalid untrusted program
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
    """Count the products of the scores and of the values; heads only divide the columns."""
    queries, key, value = shapes["query"], shapes["key"], shapes["value"]
    return multiply(multiply(product(queries[:-1]), key[-2]), add(queries[-1], value[-1]))


def _twice(rule: Callable[[Shapes], Size]) -> Callable[[Shapes], Size]:
    return lambda shapes: multiply(2, rule(shapes))


def _by(slot: str, factor: Callable[[Shapes], Size]) -> Callable[[Shapes], Size]:
    """Return a rule for one product of `factor` terms per element of `slot`."""
    return lambda shapes: multiply(product(shapes[slot]), factor(shapes))


def _of_filter(slot: str, elements: str) -> Callable[[Shapes], Size]:
    return _by(elements, lambda shapes: product(shapes[slot][1:]))


_RULES: dict[str, Callable[[Shapes], Size]] = {
    "linear": _linear,
    "linear_dx": _by("dout", lambda shapes: shapes["w"][0]),
    "linear_dw": _by("x", lambda shapes: shapes["dout"][-1]),
    "linear_int8": _by("q", lambda shapes: shapes["w"][1]),
    "embedding_linear": _by("out", lambda shapes: shapes["w"][0]),
    "addmm": _linear,
    "addmm_nt": _by("x", lambda shapes: shapes["w"][0]),
    "addmm_tn": _by("x", lambda shapes: shapes["dout"][-1]),
    "sgd_addmm": _by("x", lambda shapes: shapes["dout"][-1]),
    "matmul": _matmul,
    "matmul_dx": _by("dz", lambda shapes: shapes["y"][-2]),
    "matmul_dy": _by("x", lambda shapes: shapes["dz"][-1]),
    "dot": lambda shapes: product(shapes["x"]),
    "scaled_dot_product_attention": _attention,
    "scaled_dot_product_attention_backward": _twice(_attention),
}
for _axes in (1, 2, 3):
    _RULES |= {
        f"conv{_axes}d": _convolution,
        f"conv{_axes}d_dx": _of_filter("filter", "dy"),
        f"conv{_axes}d_dfilter": _of_filter("filter_shape", "dy"),
        f"conv{_axes}d_backward_of_parameters": _of_filter("filter_shape", "dy"),
        f"conv{_axes}d_backward": _twice(_of_filter("filter", "dy")),
        f"conv{_axes}d_backward_without_bias": _twice(_of_filter("filter", "dy")),
        f"conv_transpose{_axes}d": _transposed,
        f"conv_transpose{_axes}d_dx": _of_filter("filter", "x_shape"),
        f"conv_transpose{_axes}d_dfilter": _of_filter("filter_shape", "x"),
    }

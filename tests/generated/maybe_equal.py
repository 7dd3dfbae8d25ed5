"""Statements on two sizes that may be equal: a size beside 1, a number or another symbol, fed or known only from values."""

from collections.abc import Callable

import oarlock as ol
from generated.writing import OTHER, Writing
from oarlock.ir.size import Shape

__all__ = ["MAYBE_EQUAL"]

Join = Callable[[ol.Var, ol.Var], ol.Var]
BROADCASTING: dict[str, Join] = {
    "add": lambda x, y: ol.op.add(y, x),
    "multiply": ol.op.multiply,
    "subtract": ol.op.subtract,
    "sum": lambda x, y: ol.op.sum([x, y]),
}


def _partner(w: Writing, shape: Shape, axis: int) -> ol.Var:
    """A value of a shape whose size along one axis is another one."""
    size = w.choices.pick((1, OTHER, 2, "values", 1, OTHER, 3, 1))
    w.features.add(f"a size beside {'another symbol' if size == OTHER else size}")
    with w.program.main:
        if size == "values":
            return w.chosen(OTHER, shape, axis)
        shape = (*shape[:axis], size, *shape[axis + 1 :])
        if all(isinstance(each, int) for each in shape) and w.choices.chance(60):
            w.features.add("a parameter beside a size")
            return w.parameter(*shape)  # type: ignore[arg-type]
        return w.input(*shape)


def _pair(w: Writing, x: ol.Var, shape: Shape) -> tuple[str, Join, ol.Var, Shape]:
    """A function of two values, the second one, and the shape that it takes beside the first."""
    last, axis = shape[-1], w.choices.below(len(shape))
    names = [*BROADCASTING, "linear"]
    names += ["concat", "matmul"] * 2 if len(shape) > 1 else []
    names += ["layer_norm"] if isinstance(last, int) and last > 0 else []
    names += ["attention"] if len(shape) > 1 and isinstance(last, int) and last > 0 else []
    name = w.choices.pick(names)
    if name == "concat":
        behind = (axis + 1) % len(shape)
        return name, lambda x, y: ol.op.concat([x, y], axis=behind), _partner(w, shape, axis), shape
    if name == "matmul":
        takes = (*shape[:-2], last, w.width)
        return name, ol.op.matmul, _partner(w, takes, w.choices.below(len(takes) - 1)), takes
    if name == "linear":
        return name, ol.op.linear, _partner(w, (last, w.width), 0), (last, w.width)
    if name == "layer_norm":
        return name, lambda x, y: ol.op.layer_norm(x, y, epsilon=0.5), _partner(w, (last,), 0), (last,)
    if name == "attention":
        return name, lambda x, y: ol.op.scaled_dot_product_attention(x, y, y), _partner(w, shape, axis), shape
    return name, BROADCASTING[name], _partner(w, shape, axis), shape


def maybe_equal(w: Writing) -> ol.Var | None:
    """An op on a value and another whose size may be equal; None if that is refused when it is written."""
    x = w.find_value(lambda var: bool(var.shape) and w.may_be_fed(var.shape))
    if x is None or x.shape is None:
        return None
    name, join, y, takes = _pair(w, x, x.shape)
    try:
        found = ol.op.tanh(join(x, y))
    except ol.ShapeError:
        w.features.add("sizes refused when written")
        return None
    w.features |= {"sizes that may be equal", f"{name} of sizes that may be equal"} | ({"attention"} if name == "attention" else set())
    w.pairs += [(one, other) for one, other in zip(takes, y.shape or (), strict=True) if one != other]
    if w.depth:
        w.features.add("sizes that may be equal in a block")
    found = w.keep(found, 1.0)
    w.ends.add(found)
    return found


MAYBE_EQUAL: list[tuple[int, Callable[[Writing], object]]] = [(90, maybe_equal)]

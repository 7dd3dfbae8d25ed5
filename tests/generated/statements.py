"""Statements without blocks: each writes an op or a few, and puts what they define in reach.

Arguments stay where functions are smooth: roots, logarithms and quotients of sums of squares, kinks moved off round numbers.
"""

from collections.abc import Callable

import oarlock as ol
from generated.writing import LIMIT, Writing
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import Shape

__all__ = ["STATEMENTS", "forbidden"]

Statement = Callable[[Writing], object]


def _any(w: Writing) -> ol.Var:
    return w.value(lambda var: True, (w.width,))


def _fitting(w: Writing, x: ol.Var) -> ol.Var:
    """A value that broadcasts to the shape of `x`; `x` itself, at times."""
    return w.value(lambda var: x.shape[len(x.shape) - len(var.shape) :] == var.shape, x)


def _positive(w: Writing, x: ol.Var) -> ol.Var:
    """``x * x`` and a little."""
    return ol.op.square(x) + w.number(0.5)


def smooth(w: Writing) -> ol.Var:
    x = _any(w)
    bound = w.bound(x)
    name = w.choices.pick(("tanh", "sigmoid", "neg", "square", "assign", "exp", "sqrt", "log", "softmax", "scale", "dropout"))
    if name == "exp":
        return w.keep(ol.op.exp(x if bound <= 1.5 else ol.op.tanh(x)), 4.5)
    if name in ("sqrt", "log"):
        return w.keep(getattr(ol.op, name)(_positive(w, x)), max(bound, 1.0) + 1)
    if name == "softmax":
        return w.keep(ol.op.softmax(x) if x.shape and x.shape[-1] != 0 else ol.op.sigmoid(x), 1.0)
    if name == "scale":
        return w.keep(ol.op.multiply(x, w.number(0.7)), bound)
    bounds = {"tanh": 1.0, "sigmoid": 1.0, "square": bound * bound}
    return w.keep(getattr(ol.op, name)(x), bounds.get(name, bound))


def kinked(w: Writing) -> ol.Var:
    """Functions with kinks, which lie where values hardly ever are."""
    x = ol.op.add(_any(w), w.number(w.choices.pick((0.3717, -0.2113))))
    name = w.choices.pick(("relu", "abs", "clip", "absolute of zeros"))
    if name == "clip":
        lower, upper = w.choices.pick(((True, True), (True, False), (False, True)))
        y = ol.op.clip(x, w.number(-0.6113) if lower else None, w.number(0.7219) if upper else None)
    elif name == "absolute of zeros":  # whose gradient is 0 by a product, which hides nothing that is not a number
        y = ol.op.abs(ol.op.multiply(x, w.number(0.0)))
    else:
        y = getattr(ol.op, name)(x)
    return w.keep(y, LIMIT)


def binary(w: Writing) -> ol.Var:
    x = _any(w)
    y = _fitting(w, x)
    if w.choices.chance(40):
        x, y = y, x
    name = w.choices.pick(("add", "multiply", "subtract", "divide"))
    if name == "divide":
        return w.keep(ol.op.divide(x, _positive(w, y)), 2 * w.bound(x))
    bound = w.bound(x) * w.bound(y) if name == "multiply" else w.bound(x) + w.bound(y)
    return w.keep(getattr(ol.op, name)(x, y), bound)


def several(w: Writing) -> ol.Var:
    """One value up to five times, beside others."""
    x = _any(w)
    count = 1 + w.choices.below(5)
    others = [w.value(lambda var: var.shape == x.shape, x) for _ in range(w.choices.below(3))]
    return w.keep(ol.op.sum([*[x] * count, *others]), sum(map(w.bound, others)) + count * w.bound(x))


def linear(w: Writing) -> ol.Var:
    x = w.value(lambda var: bool(var.shape) and isinstance(var.shape[-1], int), (w.width,))
    size = w.choices.pick((w.width, w.other))
    bias = w.parameter(size) if w.choices.chance(50) else None
    matrix = w.parameter(x.shape[-1], size)
    return w.keep(ol.op.linear(x, matrix, bias), 1 + x.shape[-1] * w.bound(x) * w.bound(matrix))


def deep(w: Writing) -> ol.Var:
    """Rows in several dimensions through products one after another, each on top of what it is of, as in a transformer."""
    x = w.value(lambda var: len(var.shape) > 2 and isinstance(var.shape[-1], int) and var.shape[-1] > 0, (2, w.other, w.width))  # type: ignore[arg-type]
    for _ in range(2 + w.choices.below(3)):
        rows = ol.op.layer_norm(x, w.parameter(x.shape[-1]), epsilon=0.5) if w.choices.chance(40) else x  # type: ignore[index, arg-type]
        hidden = ol.op.tanh(ol.op.linear(rows, w.parameter(x.shape[-1], w.other), w.parameter(w.other)))  # type: ignore[index, arg-type]
        added = w.keep(ol.op.linear(hidden, w.parameter(w.other, x.shape[-1])), 1 + w.other)  # type: ignore[index, arg-type]
        x = w.keep(ol.op.add(x, added), w.bound(x) + w.bound(added))
    return x


def normalized(w: Writing) -> ol.Var:
    """Rows brought to mean 0 and variance 1, scaled and shifted, which has a gradient for each of these."""
    x = w.value(lambda var: bool(var.shape) and isinstance(var.shape[-1], int) and var.shape[-1] > 0, (w.width,))
    scale, bias = (w.parameter(x.shape[-1]) if w.choices.chance(80) else None for _ in range(2))
    return w.keep(ol.op.layer_norm(x, scale, bias, epsilon=0.5), x.shape[-1] ** 0.5 + 1)


def matrices(w: Writing) -> ol.Var:
    x = w.value(lambda var: len(var.shape) >= 2 and isinstance(var.shape[-1], int), (w.other, w.width))
    y = w.find_value(lambda var: len(var.shape) == len(x.shape) and var.shape[:-2] == x.shape[:-2] and var.shape[-2] == x.shape[-1])
    if y is None:
        x = w.parameter(w.other, w.width)
        y = w.parameter(w.width, w.width)
    return w.keep(ol.op.tanh(ol.op.matmul(x, y)), 1.0)


def reduction(w: Writing) -> ol.Var:
    x = w.value(lambda var: bool(var.shape), (w.width,))
    axis = w.choices.pick((*range(len(x.shape)), -1, None))
    keep = w.choices.chance(30)
    sizes = x.shape if axis is None else [x.shape[axis]]
    if all(isinstance(size, int) and size > 0 for size in sizes) and w.choices.chance(50):
        return w.keep(ol.op.mean(x, axis=axis, keepdim=keep), w.bound(x))
    return w.keep(ol.op.reduce_sum(x, axis=axis, keepdim=keep), w.bound(x) * 4 ** len(sizes))


def reshaped(w: Writing) -> ol.Var:
    x = w.value(lambda var: bool(var.shape) and 0 not in var.shape and sum(isinstance(size, str) for size in var.shape) < 2, (w.width,))
    name = w.choices.pick(("flatten", "reshape", "reshape_like"))
    if name == "flatten":
        y = ol.op.flatten(x, start=w.choices.below(len(x.shape)))
    else:
        column = ol.op.reshape(x, shape=(*x.shape, 1))
        y = column if name == "reshape" else ol.op.reshape_like(column, x)
    return w.keep(y, w.bound(x))


def joined(w: Writing) -> ol.Var:
    """Values one beside the other, or one after the other, perhaps cut apart again."""
    x = w.value(lambda var: bool(var.shape), (w.width,))
    axis = w.choices.below(len(x.shape))

    def fits(var: ol.Var) -> bool:
        return len(var.shape) == len(x.shape) and _without(var.shape, axis) == _without(x.shape, axis)

    parts = [x, *(w.value(fits, x) for _ in range(1 + w.choices.below(2)))]
    whole = ol.op.concat(parts, axis=axis)
    bound = max(map(w.bound, parts))
    if w.choices.chance(60):
        pieces = ol.op.split_like(ol.op.tanh(whole), parts, axis=axis)
        first, *_ = [w.keep(piece, 1.0) for piece in pieces]
        return first
    return w.keep(whole, bound)


def constant(w: Writing) -> ol.Var:
    """Numbers that are the same in each run: alone in reach, or beside what is computed here."""
    x = w.value(lambda var: bool(var.shape) and all(isinstance(size, int) for size in var.shape), (w.width,))
    part = w.keep(ol.op.full(shape=x.shape, value=w.choices.pick((0.5, -0.25, 0.0)), dtype="float64"), 0.5)  # type: ignore[arg-type]
    w.features.add("constant in a block" if w.depth else "constant")
    if w.choices.chance(30):
        return part
    computed = w.keep(ol.op.tanh(x), 1.0) if w.choices.chance(60) else x
    parts = [computed, part] if w.choices.chance(60) else [part, computed]
    whole = w.keep(ol.op.concat(parts, axis=w.choices.pick((-1, -1, 0))), max(w.bound(computed), 0.5))
    w.ends.add(whole)
    return whole


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def broadcast(w: Writing) -> ol.Var:
    like = _any(w)
    name = w.choices.pick(("broadcast_to_like", "full_like", "sum_to_shape"))
    x = _fitting(w, like)
    if name == "broadcast_to_like":
        return w.keep(ol.op.broadcast_to_like(x, like), w.bound(x))
    if name == "sum_to_shape":
        return w.keep(ol.op.tanh(ol.op.sum_to_shape(like, x)), 1.0)
    return w.keep(ol.op.multiply(x, ol.op.full_like(like, value=0.4, dtype="float64")), w.bound(x))


def masked(w: Writing) -> ol.Var:
    """A value where a comparison holds. The comparison carries no gradient."""
    x = _any(w)
    name = w.choices.pick(("greater", "less", "greater_equal", "less_equal"))
    mask = getattr(ol.op, name)(x, w.number(0.1937))
    return w.keep(ol.op.multiply(x, ol.op.cast(mask, dtype="float64")), w.bound(x))


def classified(w: Writing) -> ol.Var:
    x = w.value(lambda var: bool(var.shape) and isinstance(var.shape[-1], int) and var.shape[-1] > 0, (w.width,))
    if not w.may_be_fed(x.shape[:-1]):
        x = w.parameter(w.width)
    with w.program.main:
        label = w.label(x.shape[-1], *x.shape[:-1])
    return w.keep(ol.op.softmax_with_cross_entropy(x, label), 2 * LIMIT)


def taken(w: Writing) -> ol.Var:
    """Rows by number, some of them more than once, as of a table of words; at times only their product with a matrix is in reach."""
    x = w.value(lambda var: bool(var.shape) and isinstance(var.shape[0], int) and var.shape[0] > 0, (w.width, w.other))
    multiplied = w.choices.chance(70)
    if multiplied and (len(x.shape) != 2 or not isinstance(x.shape[1], int)):  # type: ignore[arg-type]
        x = w.parameter(w.width, w.other)
    matrix = w.parameter(x.shape[1], w.width) if multiplied else None  # type: ignore[index]
    shape = w.choices.pick((("n",), (3,), ("t", 2), (4, 2)))
    if not w.may_be_fed(shape):
        shape = (3,)
    with w.program.main:
        rows = w.label(x.shape[0], *shape)  # type: ignore[index, arg-type]
    y = ol.op.gather(x, rows)
    if matrix is None:
        return w.keep(y, w.bound(x))
    product = w.keep(ol.op.linear(y, matrix), matrix.shape[0] * w.bound(x) * w.bound(matrix))
    w.ends.add(product)
    return product


def filtered(w: Writing) -> ol.Var:
    """Images under filters."""

    def is_image(var: ol.Var) -> bool:
        return len(var.shape) == 4 and all(isinstance(size, int) and size > 0 for size in var.shape[1:])

    x = w.find_value(is_image)
    x = w.of_shape("n", w.width, 3, 2) if x is None else x
    channels, *sizes = x.shape[1:]  # type: ignore[misc]
    padding = (w.choices.below(2), w.choices.below(2))
    window = [1 + w.choices.below(min(2, size + 2 * pad)) for size, pad in zip(sizes, padding, strict=True)]
    filter = w.parameter(w.other, channels, *window)  # type: ignore[arg-type]
    bias = w.parameter(w.other) if w.choices.chance(50) else None
    y = ol.op.conv2d(x, filter, bias, stride=w.choices.pick(((1, 1), (2, 1))), padding=padding)
    w.features.add("convolution")
    return w.keep(y, 1 + channels * window[0] * window[1] * w.bound(x))  # type: ignore[operator]


def attended(w: Writing) -> ol.Var:
    """The attention of queries to keys and values, which are the same at times."""

    def fits(var: ol.Var) -> bool:
        return len(var.shape) >= 2 and isinstance(var.shape[-1], int) and var.shape[-1] > 0

    query = w.value(fits, (w.other, w.width))
    key = w.value(lambda var: fits(var) and var.shape[:-2] == query.shape[:-2] and var.shape[-1] == query.shape[-1], query)
    value = w.value(lambda var: fits(var) and var.shape[:-1] == key.shape[:-1], key)
    heads = 2 if query.shape[-1] % 2 == value.shape[-1] % 2 == 0 and w.choices.chance(50) else 1
    causal = query.shape[-2] == key.shape[-2] and w.choices.chance(50)
    w.features.add("attention")
    return w.keep(ol.op.scaled_dot_product_attention(query, key, value, heads=heads, causal=causal), w.bound(value))


def dropped(w: Writing) -> ol.Var:
    """A value times the mean of what a dropout leaves of many elements."""
    x = _any(w)
    share = ol.op.mean(ol.op.dropout(w.wide(), rate=w.choices.pick((0.5, 0.25))))
    w.features.add("dropout in a block" if w.depth else "dropout")
    return w.keep(ol.op.multiply(x, share), 2 * w.bound(x))


def unchanged(w: Writing) -> ol.Var:
    """Something that no step of a loop changes, computed of values around the open block alone; and a value times it."""
    around = w.visible(lambda var: var.block is not current_block() and not any(isinstance(size, str) for size in var.shape))
    if not w.depth or not around:
        return smooth(w)
    x = w.choices.pick([var for var in around if not var.shape] or [w.of_shape()]) if w.choices.chance(50) else w.choices.pick(around)
    factor = getattr(ol.op, w.choices.pick(("square", "tanh", "sigmoid", "neg")))(x)
    factor = w.keep(ol.op.multiply(factor, x) if w.choices.chance(40) else factor, w.bound(x) ** 3)
    y = w.value(lambda var: var.shape[len(var.shape) - len(factor.shape) :] == factor.shape, factor)
    w.features.add("unchanged in a block")
    product = w.keep(ol.op.multiply(y, factor), w.bound(y) * w.bound(factor))
    w.ends.add(product)
    return product


def pooled(w: Writing) -> ol.Var:
    """A row for each sequence of a ragged value, perhaps for each element again; or a softmax within each sequence."""

    def fits(var: ol.Var) -> bool:
        return bool(var.shape) and w.rows_of(var.shape[0]) is not None and w.may_be_stepped(var.shape[0])

    x = w.find_value(fits)
    if x is None and not w.may_be_ragged:
        return smooth(w)
    x = w.ragged(w.width) if x is None else x
    name = w.choices.pick(("mean", "sum", "first", "last", "softmax"))
    w.features.add("pooled")
    if name == "softmax":
        return w.keep(ol.layer.sequence_softmax(x), 1.0)
    y = w.keep(ol.op.tanh(ol.layer.sequence_pool(x, name)), 1.0)
    return w.keep(ol.layer.sequence_expand(y, x), 1.0) if w.choices.chance(30) else y


def bags(w: Writing) -> ol.Var:
    """Bags of rows of a table, by ragged ids of up to three dimensions: a bag in each sequence or, of more dimensions, in each element."""
    if not w.may_be_ragged:
        return taken(w)
    table = w.parameter(w.other, w.width)
    shape = w.choices.pick(((2,), (w.other,), (), (2, 3)))
    ids = w.ragged_ids(w.other, *shape)
    mode, weight = w.choices.pick(("mean", "sum")), ol.layer.ParameterOptions(name=table.name)
    w.features.add(f"bags of ragged ids of {len(shape) + 1} dimensions")
    return w.keep(ol.op.tanh(ol.layer.embedding_bag(ids, (w.other, w.width), dtype="float64", mode=mode, weight=weight)), 1.0)


CUTS = [
    slice(None, 2), slice(-2, None), slice(1, None), slice(None, -1), slice(1, -1), slice(None, 512), slice(-512, 1), slice(3, 600),
    slice(None, None, 2), slice(1, 7, 3), slice(2, 1), slice(None, None, -1), slice(7, 0, -2), slice(None, -3, -1), slice(-2, None, -1),
]  # fmt: skip
"""Parts of an axis, as Python writes them: some reach beyond it, and some take nothing."""


def sliced(w: Writing) -> ol.Var:
    """A part of a value, as NumPy's indices take it: slices of symbols and of numbers, single places, `...` and new axes."""
    x = w.value(lambda var: bool(var.shape) and any(map(w.is_counted, var.shape)), (w.width,))
    key: list[object] = []
    for size in x.shape:
        if not w.is_counted(size) or w.choices.chance(30):
            key.append(slice(None))
            continue
        if isinstance(size, int) and size and w.choices.chance(30):
            key.append(w.choices.below(size) - w.choices.pick((0, size)))
        else:
            key.append(w.choices.pick(CUTS))
            w.features.add(f"slice of {'a symbol' if isinstance(size, str) else 'a number'}")
    while key[-1:] == [slice(None)]:
        key.pop()
    extra = w.choices.pick(("nothing", "nothing", "a new axis", "an ellipsis"))
    if extra == "a new axis" and len(x.shape) < 4:
        key.insert(w.choices.below(len(key) + 1), None)
    elif extra == "an ellipsis":
        key.append(...)
    return w.keep(x[tuple(key)], w.bound(x))


def forbidden(w: Writing) -> ol.Var:
    """An op that raises where it runs."""
    w.features.add("what would raise")
    return w.keep(ol.op.gather(w.parameter(w.width, w.other), w.far()), 1.0)


STATEMENTS: list[tuple[int, Statement]] = [
    (30, smooth),
    (25, binary),
    (10, linear),
    (8, several),
    (8, reduction),
    (5, kinked),
    (5, matrices),
    (5, joined),
    (9, constant),
    (5, broadcast),
    (4, reshaped),
    (4, normalized),
    (4, masked),
    (2, classified),
    (8, taken),
    (3, filtered),
    (2, attended),
    (6, dropped),
    (6, unchanged),
    (5, pooled),
    (5, bags),
    (4, deep),
    (9, sliced),
]

"""Where the results of an op are whose inputs workers have in equal shares, along an axis whose size is a number.

Signatures tell it of products, by the names of dimensions, and of what computes each index of an axis alone. What is said here beside them
are operators whose attributes name a shape, or heads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from oarlock.errors import OarlockError
from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.shape_rules import require_axes
from oarlock.ir.size import Shape, Size, product
from oarlock.ir.var import Var, is_among
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Kind, Placement, share_of, shares
from oarlock.passes.rows import BY_FIRST_AXIS, TOLD, Place, place_after
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot, TensorType

__all__ = ["decide_shares"]

_ELEMENT_BY_ELEMENT = {"cast", "dropout_dx", "optimization_barrier", "sum"}
_HEADS = {"logsumexp": -2, "dlogsumexp": -2, "mask": -3, "bias": -3}
"""Of what attention reads and gives, the axis of the heads; of the rest it is the last, whose columns the heads divide."""


def decide_shares(op: Op, operator: Operator, have: Mapping[Var, Placement], data: Sequence[Var], shapes: Sequence[Var]) -> Decision | None:
    """A way to compute the op by shares, where some of its inputs are in shares; None where there is none."""
    if any(var.shape is None for var in (*op.reads, *op.writes)):
        return None
    for found in _ways(op, operator, have, data, shapes):
        if found is not None and _divides(found) and (found.written or _fits(op, operator, found)):
            return found
    return None


def _ways(
    op: Op, operator: Operator, have: Mapping[Var, Placement], data: Sequence[Var], shapes: Sequence[Var]
) -> Iterator[Decision | None]:
    if op.type in _OTHERS:
        yield _OTHERS[op.type](op, have)
        return
    if operator.is_contraction:
        yield from _contracted(op, operator, have)
    if (operator.forward or operator).type == "scaled_dot_product_attention":
        yield _by_heads(op, operator, have)
    if not any(have[var].kind is Kind.SHARES for var in data):
        yield _told_by_shares(op, have, data, shapes)
        return
    yield _reduced(op, operator, have, data)
    yield _alone(op, operator, have, data)


def _divides(decision: Decision) -> bool:
    """Whether each value that is to be in shares has a size that its workers divide, where they are to."""
    placed = [*decision.needs.items(), *decision.gives.items()]
    return all(_is_divided(var.shape[at.axis], at.workers) for var, at in placed if at.kind is Kind.SHARES)  # type: ignore[index]


def _is_divided(size: Size, workers: int) -> bool:
    return isinstance(size, int) and size % workers == 0


def _fits(op: Op, operator: Operator, decision: Decision) -> bool:
    """Whether the op, given shares, gives shares by its signature."""

    def types(slots: Mapping[str, Sequence[Var]], placed: Mapping[Var, Placement]) -> dict[str, list[TensorType]]:
        return {
            slot: [TensorType(var.dtype, share_of(var.shape or (), placed.get(var, REPLICATED))) for var in vars]
            for slot, vars in slots.items()
        }

    wanted = types(op.outputs, decision.gives)
    try:
        found = operator.infer(types(op.inputs, decision.needs), {**op.attributes, **decision.attributes}, lambda: "?")
    except OarlockError:
        return False
    pairs = ((a.shape or (), b.shape or ()) for slot, items in wanted.items() for a, b in zip(items, found[slot], strict=True))
    return all(len(a) == len(b) and all(x == y or isinstance(y, str) for x, y in zip(a, b, strict=True)) for a, b in pairs)


# Products


def _contracted(op: Op, operator: Operator, have: Mapping[Var, Placement]) -> Iterator[Decision]:
    """By each dimension of the signature along which an input is in shares, those of parameters first."""
    inputs = {slot.name: slot for slot in operator.signature.inputs}
    outputs = {slot.name: slot for slot in operator.signature.outputs}
    in_shares = [(slot, var) for slot, vars in op.inputs.items() for var in vars if have[var].kind is Kind.SHARES]
    for slot, var in sorted(in_shares, key=lambda item: not item[1].persistable):
        dimension = inputs[slot].dimensions(len(var.shape or ()))[have[var].axis]
        workers = have[var].workers
        gives = {each: _along(dimension, outputs[name], each, workers) or PARTIAL for name, vars in op.outputs.items() for each in vars}
        added = PARTIAL if PARTIAL in gives.values() else REPLICATED
        needs = _agreed(
            (each, _along(dimension, inputs[name], each, workers) or (added if inputs[name].optional else REPLICATED))
            for name, vars in op.inputs.items()
            for each in vars
        )
        if needs is not None:
            yield Decision(needs, gives)


def _agreed(placed: Iterable[tuple[Var, Placement]]) -> dict[Var, Placement] | None:
    """Where each variable is to be; None where one is to be in two ways."""
    found: dict[Var, Placement] = {}
    for var, placement in placed:
        if found.setdefault(var, placement) != placement:
            return None
    return found


def _along(dimension: tuple[str, int], slot: Slot, var: Var, workers: int) -> Placement | None:
    found = slot.dimensions(len(var.shape or ()))
    return shares(found.index(dimension), workers) if dimension in found else None


# What computes each index of an axis alone


def _alone(op: Op, operator: Operator, have: Mapping[Var, Placement], data: Sequence[Var]) -> Decision | None:
    """The same axis of all that has it, where each index along it is computed alone."""
    if op.type in BY_FIRST_AXIS and op.type not in _ELEMENT_BY_ELEMENT:
        return None
    leading = {var for slot in operator.signature.inputs if slot.leading_group for var in op.inputs.get(slot.name, ())}
    for first in data:
        if have[first].kind is not Kind.SHARES:
            continue
        if operator.row_group is not None:
            at = dict.fromkeys(leading, have[first].axis)
        else:
            at = {var: have[first].axis + len(var.shape or ()) - len(first.shape or ()) for var in data}
        size = _size(first, have[first].axis)
        places = {var: Place(axis) for var, axis in at.items() if 0 <= axis < len(var.shape or ()) and _size(var, axis) == size}
        if first not in places:
            continue
        if op.type in _ELEMENT_BY_ELEMENT:
            place = Place(have[first].axis) if len(places) == len(set(data)) else None
        else:
            place = place_after(operator, op, "", places)
        if place is None or any(place.axis >= len(var.shape or ()) or _size(var, place.axis) != size for var in op.writes):
            continue
        workers = have[first].workers
        needs = {var: shares(places[var].axis, workers) if var in places else REPLICATED for var in data}
        needs |= {var: have[var] for var in op.reads if var not in needs}  # of which the shape alone is read
        gives = dict.fromkeys(op.writes, shares(place.axis, workers))
        attributes: dict[str, object] = {}
        if op.type == "broadcast_to":
            attributes["shape"] = Sizes(share_of(op.writes[0].shape or (), gives[op.writes[0]]))
        return Decision(needs, gives, attributes=attributes)
    return None


def _size(var: Var, axis: int) -> Size:
    return (var.shape or ())[axis]


def _reduced(op: Op, operator: Operator, have: Mapping[Var, Placement], data: Sequence[Var]) -> Decision | None:
    """Of what sums up, or takes an extreme, along some axes: any other axis is as it was, and a sum is one of shares."""
    declared = [slot.axes for slot in operator.signature.outputs]
    if len(data) != 1 or operator.effects or not all(axes and axes[0].kind == "without" for axes in declared):
        return None
    (x,) = data
    placed = have[x]
    axes = require_axes(x.shape or (), op.attributes.get("axis"))  # type: ignore[arg-type]
    if placed.axis not in axes:
        before = 0 if op.attributes.get("keepdim") else sum(axis < placed.axis for axis in axes)
        return Decision({x: placed}, dict.fromkeys(op.writes, shares(placed.axis - before, placed.workers)))
    if op.type == "reduce_sum":
        return Decision({x: placed}, dict.fromkeys(op.writes, PARTIAL))
    return Decision({x: placed}, dict.fromkeys(op.writes, PARTIAL), "part_of_mean") if op.type == "mean" else None


def _told_by_shares(op: Op, have: Mapping[Var, Placement], data: Sequence[Var], shapes: Sequence[Var]) -> Decision | None:
    """Of what is in shares the shape alone is read, and not of the axis along which it is in shares."""
    if op.type in TOLD or (op.type == "size" and _axis(op, shapes[0]) != have[shapes[0]].axis):
        needs = dict.fromkeys(data, REPLICATED) | {var: have[var] for var in shapes if not is_among(var, data)}
        return Decision(needs, dict.fromkeys(op.writes, REPLICATED))
    return None


def _axis(op: Op, var: Var) -> int:
    return op.attributes.get("axis", 0) % max(1, len(var.shape or ()))  # type: ignore[operator]


# Attention


def _by_heads(op: Op, operator: Operator, have: Mapping[Var, Placement]) -> Decision | None:
    """Attention of some heads: its columns are theirs, one head after another."""
    heads: int = op.attributes["heads"]  # type: ignore[assignment]
    workers = next(placement.workers for placement in map(have.__getitem__, op.reads) if placement.kind is Kind.SHARES)
    if heads % workers or op.type.endswith("_dbias"):
        return None

    def placed(slot: str, var: Var) -> Placement:
        axis = _HEADS.get(slot, -1) + len(var.shape or ())
        return REPLICATED if axis == -3 + len(var.shape or ()) and _size(var, axis) == 1 else shares(axis, workers)

    needs = _agreed((var, placed(slot, var)) for slot, vars in op.inputs.items() for var in vars)
    gives = {var: placed(slot, var) for slot, vars in op.outputs.items() for var in vars}
    return None if needs is None else Decision(needs, gives, attributes={"heads": heads // workers})


# Operators by name


def _reshape(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """Of a new shape: elements stay in their order, so an axis is in shares before which as many elements stand as did."""
    x, (y,) = op.inputs["x"][0], op.writes
    given = have[x] if have[x].kind is Kind.SHARES or have[x] is PARTIAL else REPLICATED
    gives = given
    if given.kind is Kind.SHARES:
        axis = _axis_after(x.shape or (), y.shape or (), given)
        if axis is None:
            return None
        gives = shares(axis, given.workers)
    needs = {var: have[var] for var in op.reads} | {x: given}
    shape: dict[str, object] = {"shape": Sizes(share_of(y.shape or (), gives))}
    if op.type == "view":  # whose others tell symbols alone
        return Decision(needs, {y: gives}, attributes=shape)
    return Decision({x: given}, {y: gives}, "reshape", attributes=shape)


def _axis_after(before: Shape, after: Shape, placed: Placement) -> int | None:
    ahead, size = product(before[: placed.axis]), before[placed.axis]
    for axis, item in enumerate(after):
        if product(after[:axis]) == ahead and _is_divided(item, placed.workers) and item != 1:
            return axis if size % item == 0 or item % size == 0 else None  # type: ignore[operator]
    return None


def _expanded(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """Of what repeats a value along axes, in the shape of another: `like` is in shares, and the value where it has the axis."""
    (like,) = op.inputs.get("like") or op.inputs["x_shape"]
    values = [var for slot, vars in op.inputs.items() if slot not in ("like", "x_shape") for var in vars]
    (y,) = op.writes
    if have[like].kind is not Kind.SHARES:
        return None
    placed, rank = have[like], len(like.shape or ())
    needs: dict[Var, Placement] = {like: placed}
    written = ""
    for value in values:
        axis: int | None = placed.axis - rank + len(value.shape or ())
        if op.type in ("mean_dx", "reduce_sum_dx"):
            axes = require_axes(like.shape or (), op.attributes.get("axis"))  # type: ignore[arg-type]
            before = 0 if op.attributes.get("keepdim") else sum(each < placed.axis for each in axes)
            axis = None if placed.axis in axes else placed.axis - before
            written = "part_of_mean_dx" if op.type == "mean_dx" and axis is None else ""
        has = axis is not None and axis >= 0 and _size(value, axis) == _size(like, placed.axis)
        if needs.setdefault(value, shares(axis, placed.workers) if has else REPLICATED) != needs[value]:  # type: ignore[arg-type]
            return None
    return Decision(needs, {y: placed}, written)


def _sum_to_shape(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """Of a sum to the shape of another value: an axis that this has stays in shares; else each worker sums its own."""
    (x,), (like,), (y,) = op.inputs["x"], op.inputs["like"], op.writes
    if x is like:
        return Decision({x: have[x]}, {y: have[x]})
    more = len(x.shape or ()) - len(like.shape or ())
    placed = have[x] if have[x].kind is Kind.SHARES else have[like]._replace(axis=have[like].axis + more)
    axis = placed.axis - more
    if axis >= 0 and _size(like, axis) == _size(x, placed.axis):
        kept = shares(axis, placed.workers)
        return Decision({x: placed, like: kept}, {y: kept})
    if have[like].kind is Kind.SHARES:
        return None
    return Decision({x: placed, like: have[like]}, {y: PARTIAL})


def _lookup(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """Of rows of a table: workers add up what each finds in its rows, or have the columns that they have of the table."""
    (x,), (rows,), (y,) = op.inputs["x"], op.inputs["rows"], op.writes
    if have[x].kind is not Kind.SHARES or op.attributes.get("axis") or x is rows:
        return None
    needs = {x: have[x], rows: REPLICATED}
    if not have[x].axis:
        return Decision(needs, {y: PARTIAL}, "gather") if x.dtype.is_inexact else None
    return Decision(needs, {y: shares(have[x].axis + len(rows.shape or ()) - 1, have[x].workers)})


def _scatter(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """The gradient of that."""
    (values,), (rows,), (like,), (y,) = op.inputs["values"], op.inputs["rows"], op.inputs["like"], op.writes
    placed = have[like]
    if placed.kind is not Kind.SHARES or op.attributes.get("axis"):
        return None
    if not placed.axis:
        return Decision({values: REPLICATED, rows: REPLICATED, like: placed}, {y: placed}, "scatter_add")
    axis = placed.axis + len(rows.shape or ()) - 1
    return Decision({values: shares(axis, placed.workers), rows: REPLICATED, like: placed}, {y: placed})


def _dot(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    placed = next(have[var] for var in op.reads if have[var].kind is Kind.SHARES)
    return None if op.attributes.get("mean") else Decision(dict.fromkeys(op.reads, placed), dict.fromkeys(op.writes, PARTIAL))


def _dropout(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    (x,) = op.inputs["x"]
    return Decision({var: have[x] if var is x else REPLICATED for var in op.reads}, dict.fromkeys(op.writes, have[x]), "dropout")


_OTHERS: dict[str, Callable[[Op, Mapping[Var, Placement]], Decision | None]] = {
    **dict.fromkeys(("reshape", "reshape_like", "view"), _reshape),
    **dict.fromkeys(("broadcast_to_like", "full_like", "mean_dx", "reduce_sum_dx"), _expanded),
    "sum_to_shape": _sum_to_shape,
    "gather": _lookup,
    "scatter_add": _scatter,
    "dot": _dot,
    "dropout": _dropout,
}

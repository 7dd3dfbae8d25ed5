"""Where the results of an op are, by where its inputs are. What no rule covers is computed whole, by every worker.

The law of rows. Every decision holds for every division of the rows among workers, one row to each too. With the inputs where `needs` has
them, and nothing else exchanged:

- a **sharded** result: its rows of a worker follow from that worker's rows of the inputs, and from what is replicated, alone;
- a **partial** result: what the workers have of it adds up to the value, so it is the sum of what it is of each row, and 0 of no row;
- a **replicated** result, and its size, does not depend on the rows of any worker.

Where an op is `written` otherwise, the law is about what is written: a mean, for one, needs the number of all rows. What `needs` has
elsewhere than it was is an exchange, and there rows of different workers meet. `tests/row_law` tries the law on every operator.
"""

from collections.abc import Collection, Mapping

from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.shape_rules import require_axes
from oarlock.ir.size import Size, divide, names_in
from oarlock.ir.var import Var, is_among
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Kind, Placement, numbers_of, sharded
from oarlock.passes.parallel.row_operators import EXPANSIONS, SEQUENCES, shares_rows
from oarlock.passes.parallel.share_rules import decide_shares
from oarlock.passes.parallel.valid_rows import VALID_WAYS, decide_valid_mean
from oarlock.passes.rows import Place, axes_with, is_multiple, place_after, reshaped
from oarlock.registry.attributes import axes_alone
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator

__all__ = ["EXACT", "decide", "whole"]

EXACT = (DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64, DType.COMPLEX128)
"""Dtypes in which sums of many rows are as good as they are; sums of others are made in float32."""

_SUMS = {"add", "assign", "mean", "move", "neg", "reduce_sum", "stop_gradient", "subtract", "sum", "sum_to_shape"}
_MOVES = {"concat", "flip", "matrix_transpose", "narrow", "reshape", "reshape_like", "roll", "slice", "slice_dx", "transpose", "view"}
_LINEAR = _SUMS | _MOVES
"""Operators whose result is the sum over the workers of their results, where each input is such a sum."""
_RANDOM = {"bernoulli", "dropout", "random_normal_like", "random_uniform_like"}
_BATCH_NORM = {"batch_norm", "batch_norm_grad"}
_BATCH_SUMS = {"batch_norm_bias_grad", "batch_norm_scale_grad"}  # over all axes but that of the channels
_CHANNELS = 1


def decide(op: Op, catalogue: Catalogue, have: Mapping[Var, Placement], shared: Mapping[Var, Placement]) -> Decision:
    """The best way for an op without blocks: without a word between the workers where there is one.

    Of some values that every worker has whole, others take a share: `shared` says which.
    """
    operator = catalogue.get(op.type)
    told = {slot.name for slot in operator.signature.inputs if slot.shape_only}
    data = [var for slot, vars in op.inputs.items() if slot not in told for var in vars]
    data += [value for value in op.attributes.values() if isinstance(value, Var)]
    shapes = [var for slot in told for var in op.inputs.get(slot, ())]
    in_shares = {var for var in (*data, *shapes) if have[var].kind is Kind.SHARES}
    if in_shares:
        gathered = {**have, **dict.fromkeys(in_shares, REPLICATED)}
        return decide_shares(op, operator, have, data, shapes) or decide(op, catalogue, gathered, {})
    taken = {var: shared[var] for var in data if var in shared and have[var] is REPLICATED}
    if taken and operator.is_contraction:
        found = decide_shares(op, operator, {**have, **taken}, data, shapes)
        if found is not None and PARTIAL not in found.gives.values():
            return found
    if not any(have[var].differs for var in (*data, *shapes)):
        if op.type in _LINEAR and data and all(have[var] is PARTIAL for var in data):
            return Decision({var: have[var] for var in op.reads}, dict.fromkeys(op.writes, PARTIAL))
        return whole(op, have, set(shapes) - set(data))
    if not any(have[var].differs for var in data) and _is_told_others(op, have, shapes):
        needs = dict.fromkeys(data, REPLICATED) | {var: have[var] for var in shapes if not is_among(var, data)}
        return Decision(needs, dict.fromkeys(op.writes, REPLICATED))
    return _by_rows(op, operator, have, data, shapes) or whole(op, have)


def _is_told_others(op: Op, have: Mapping[Var, Placement], shapes: Collection[Var]) -> bool:
    """Whether of what tells sizes by its shape alone, the number of rows is not asked for."""
    rows = {name for var in shapes if have[var].by_rows and var.shape for name in names_in(var.shape[have[var].axis])}
    sizes = [size for value in op.attributes.values() if isinstance(value, Sizes) for size in value]
    sizes += [size for var in op.writes for size in var.shape or ("?",)]
    return op.type not in ("numel", "size") and not any(rows & names_in(size) for size in sizes if size != "?")


def whole(op: Op, have: Mapping[Var, Placement], shapes: Collection[Var] = ()) -> Decision:
    """Every worker computes the op on whole inputs. Of a partial sum each has the shape, where that alone is read."""
    needs = {var: PARTIAL if have[var] is PARTIAL and is_among(var, shapes) else REPLICATED for var in op.reads}
    return Decision(needs, dict.fromkeys(op.writes, REPLICATED))


def _by_rows(op: Op, operator: Operator, have: Mapping[Var, Placement], data: list[Var], shapes: list[Var]) -> Decision | None:
    found = _special(op, have)
    if found is not None:
        return found
    if shares_rows(operator) is not None:
        return _row_slots(op, operator, have)
    if any(have[var].kind is Kind.SPLITS for var in op.reads):
        return None
    symbol = _symbol(op, have)
    if symbol is None or any(have[var] is PARTIAL and axes_with(var.shape, symbol) for var in shapes):
        return None  # nothing counts rows, or what tells a shape has the rows of all
    placed = {var: place for var in (*data, *shapes) if (place := _place(var, have[var], symbol)) is not None}
    needs = {var: _sharded(placed[var]) if var in placed else REPLICATED for var in op.reads}
    needs |= {var: PARTIAL for var in shapes if have[var] is PARTIAL and not is_among(var, data)}
    place = _after(op, operator, symbol, placed, data, shapes)
    if place is not None:
        gives = {var: _given(var, place, symbol) for var in op.writes}
        if None not in gives.values():
            written = "random" if op.type in _RANDOM else ""
            return Decision(needs, gives, written) if not written or place == Place(0) else None  # type: ignore[arg-type]
    if op.type in ("mean", "mean_dx") and (place := _reduced(op, placed)) is not None:
        given = _sharded(place) if op.type == "mean_dx" else PARTIAL if op.writes[0].dtype in EXACT else REPLICATED
        return Decision(needs, dict.fromkeys(op.writes, given), op.type)
    if op.type in VALID_WAYS:
        return decide_valid_mean(op, placed, needs, op.writes[0].dtype in EXACT)
    if op.type == "dot" and op.attributes.get("mean") and _common(placed, data) is not None:
        return Decision(needs, dict.fromkeys(op.writes, PARTIAL if op.writes[0].dtype in EXACT else REPLICATED), "mean")
    if _sums(op, operator, placed, data):
        return Decision(needs, dict.fromkeys(op.writes, PARTIAL))
    if op.type == "numel" or (op.type == "size" and _axis(op, shapes[0]) == placed[shapes[0]].axis):
        return Decision(needs, dict.fromkeys(op.writes, PARTIAL))
    return Decision({var: have[var] for var in op.reads}, dict.fromkeys(op.writes, REPLICATED)) if op.type == "size" else None


def _axis(op: Op, var: Var) -> int:
    return op.attributes.get("axis", 0) % max(1, len(var.shape or ()))  # type: ignore[operator]


def _symbol(op: Op, have: Mapping[Var, Placement]) -> str | None:
    """The name of the size by which rows are counted, where all that is sharded has that name along its axis."""
    names: set[str] | None = None
    for var in op.reads:
        if have[var].by_rows and var.shape is not None:
            here = set(names_in(var.shape[have[var].axis]))
            names = here if names is None else names & here
    return next(iter(names)) if names and len(names) == 1 else None


def _place(var: Var, placement: Placement, symbol: str) -> Place | None:
    """Where a variable has rows: where it is sharded, or would be; what is replicated has rows where one of its sizes counts them."""
    axes = axes_with(var.shape, symbol)
    if placement.by_rows:
        return Place(placement.axis, placement.outer)
    if placement.kind is Kind.REPLICATED and len(axes) == 1 and is_multiple((var.shape or ())[axes[0]], symbol):
        return Place(axes[0])
    return None


def _given(var: Var, place: Place, symbol: str) -> Placement | None:
    if axes_with(var.shape, symbol) != [place.axis] or not isinstance(place.outer, int):
        return None
    rows = divide((var.shape or ())[place.axis], place.outer)
    return _sharded(place) if rows is not None and is_multiple(rows, symbol) else None


def _sharded(place: Place) -> Placement:
    assert isinstance(place.outer, int), "no variable is placed otherwise"
    return sharded(place.axis, place.outer)


def _after(op: Op, operator: Operator, symbol: str, placed: dict[Var, Place], data: list[Var], shapes: list[Var]) -> Place | None:
    """Where the results have rows, each computed of the same row of the inputs; None where that is not shown."""
    rows = [var for var in data if var in placed]
    if op.type in EXPANSIONS and not (op.type == "mean_dx" and _reduced(op, placed) is not None):
        like = op.writes[0]
        axes = axes_with(like.shape, symbol)
        if not rows:
            return Place(axes[0]) if len(axes) == 1 else None
        ranks = len(like.shape or ()) - len(rows[0].shape or ())
        if op.type == "broadcast_to_like":
            return placed[rows[0]]._replace(axis=placed[rows[0]].axis + ranks)
        if op.type in ("reduce_sum_dx", "mean_dx"):
            return placed[rows[0]]._replace(axis=axes[0]) if len(axes) == 1 else None
        return None
    if not rows:
        if op.type == "broadcast_to" and len(axes_with(op.writes[0].shape, symbol)) == 1:
            return Place(axes_with(op.writes[0].shape, symbol)[0])
        return None
    if op.type in _RANDOM or op.type in ("cast", "dropout_dx", "optimization_barrier", "sum"):
        return _common(placed, data)
    if op.type == "reshape_like":
        return reshaped(rows[0].shape or (), op.writes[0].shape or (), placed[rows[0]], symbol)
    if op.type == "sum_to_shape":
        axis = placed[rows[0]].axis - (len(rows[0].shape or ()) - len(op.writes[0].shape or ()))
        return placed[rows[0]]._replace(axis=axis) if axis in axes_with(op.writes[0].shape, symbol) else None
    if op.type in ("take_along_axis", "scatter_along_axis", "slice_dx"):
        place = _common(placed, data)
        return place if place is not None and place.axis != _axis(op, rows[0]) else None
    if op.type == "select_branch":
        place = _common(placed, data)
        return place._replace(axis=place.axis - 1) if place is not None and place.axis else None
    only = {var: placed[var] for var in rows}
    found = place_after(operator, op, symbol, only) if not operator.effects else None
    if found is None and operator.axis_attribute is not None and shapes and all(var in placed for var in op.reads):
        rank = max(len(var.shape or ()) for var in (*op.reads, *op.writes))
        place = _common(placed, placed)
        if place is not None and axes_alone(operator, op.attributes, rank) > place.axis:
            return place
    return found


def _common(placed: Mapping[Var, Place], vars: Collection[Var]) -> Place | None:
    """The place of rows that some variables have in common; None where they have not one, or none."""
    places = {placed.get(var) for var in vars}
    return places.pop() if len(places) == 1 else None


def _reduced(op: Op, placed: Mapping[Var, Place]) -> Place | None:
    """The place of the rows, where it is among those that a mean is over, or its gradient."""
    var = op.inputs["x" if op.type == "mean" else "x_shape"][0]
    if var not in placed or var.shape is None:
        return None
    return placed[var] if placed[var].axis in require_axes(var.shape, op.attributes.get("axis")) else None  # type: ignore[arg-type]


def _sums(op: Op, operator: Operator, placed: Mapping[Var, Place], data: list[Var]) -> bool:
    """Whether the result is the sum of what the rows of each worker add."""
    rows = [var for var in data if var in placed]
    if operator.effects or not rows:
        return False
    if op.type == "reduce_sum":
        return placed[rows[0]].axis in require_axes(rows[0].shape or (), op.attributes.get("axis"))  # type: ignore[arg-type]
    if op.type == "sum_to_shape":
        return True
    if op.type == "dot":
        return _common(placed, data) is not None
    if op.type == "contingency_table":
        return _common(placed, data) is not None
    if op.type == "scatter_add":
        values, numbers = op.inputs["values"][0], op.inputs["rows"][0]
        at = op.attributes.get("axis") or 0
        fits = values in placed and numbers in placed and placed[values] == Place(placed[numbers].axis + at, placed[numbers].outer)  # type: ignore[operator]
        return bool(fits) and op.inputs["like"][0] not in placed
    if op.type in _BATCH_SUMS:
        images = {var for slot in ("x", "dy") for var in op.inputs.get(slot, ())}
        place = _common(placed, images)
        return place is not None and place.axis != _CHANNELS and set(rows) == images
    if set(operator.summed_outputs) != {slot.name for slot in operator.signature.outputs}:
        return False
    groups = {slot.leading_group for slot in operator.signature.inputs} - {None}
    if len(groups) != 1:
        return False
    (group,) = groups
    leading = {slot.name: len(slot.axes or ()) - 1 for slot in operator.signature.inputs if slot.leading_group == group}
    places = set()
    for slot, vars in op.inputs.items():
        for var in vars:
            if (var in placed) != (slot in leading) or (var in placed and placed[var].axis >= len(var.shape or ()) - leading[slot]):
                return False
            places |= {placed[var]} if var in placed else set()
    return len(places) == 1


def _row_slots(op: Op, operator: Operator, have: Mapping[Var, Placement]) -> Decision | None:
    """The same of operators that are known to compute what leads with rows by row."""
    rows = shares_rows(operator)
    assert rows is not None
    needs: dict[Var, Placement] = {}
    for slot, vars in op.inputs.items():
        for var in vars:
            placement = have[var]
            if slot == "at" and placement.kind is not Kind.NUMBERS and _forward_type(operator) in SEQUENCES:
                return None  # positions among the elements of all workers
            if not rows[slot]:
                wanted = REPLICATED
            elif placement.kind is Kind.SPLITS or placement.kind is Kind.NUMBERS or placement == sharded():
                wanted = placement
            elif placement.kind is Kind.REPLICATED and var.shape:
                wanted = sharded()
            else:
                return None
            if needs.setdefault(var, wanted) != wanted:
                return None
    if "splits" in op.inputs and any(have[var].kind is not Kind.SPLITS for var in op.inputs["splits"]):
        return None
    merges = op.type == "merge" or op.type.startswith("merge_")  # rows of two sizes, into rows of a third
    symbol = _symbol(op, have)
    if "splits" not in op.inputs and symbol is None and not merges:
        return None
    gives: dict[Var, Placement] = {}
    for slot, vars in op.outputs.items():
        for var in vars:
            counts = op.type in SEQUENCES and slot == "at"
            gives[var] = numbers_of(_elements(op)) if counts else sharded() if rows[slot] else PARTIAL
            leads = var.shape if "splits" in op.inputs or merges or symbol is None else _given(var, Place(0), symbol)
            if rows[slot] and not leads:
                return None
    return Decision(needs, gives)


def _forward_type(operator: Operator) -> str:
    """Return the type of the operator whose gradient, of any order, an operator is; its own type if it is not a gradient."""
    while operator.forward is not None:
        operator = operator.forward
    return operator.type


def _elements(op: Op) -> Size:
    return (op.reads[0].shape or (0,))[0]


def _special(op: Op, have: Mapping[Var, Placement]) -> Decision | None:
    """The decision about what has a rule of its own: numbers of rows, and statistics of a batch."""
    if op.type in _BATCH_NORM and have[op.inputs["x"][0]] == sharded():
        needs = {var: sharded() if slot in ("x", "dy") else REPLICATED for slot, vars in op.inputs.items() for var in vars}
        gives = {var: sharded() if slot in ("y", "dx") else REPLICATED for slot, vars in op.outputs.items() for var in vars}
        return Decision(needs, gives, "sync_batch_norm")
    if op.type == "nonzero" and have[op.reads[0]] == sharded() and len(op.reads[0].shape or ()) == 1:
        return Decision({op.reads[0]: sharded()}, {op.writes[0]: numbers_of(op.reads[0].shape[0])})  # type: ignore[index]
    if op.type == "gather":
        (x,), (rows,) = op.inputs["x"], op.inputs["rows"]
        if _counts(have, rows, x):
            return Decision({x: sharded(), rows: have[rows]}, {op.writes[0]: sharded()}) if not op.attributes.get("axis") else None
    if op.type == "scatter_add":
        (values,), (rows,), (like,) = op.inputs["values"], op.inputs["rows"], op.inputs["like"]
        if _counts(have, rows, like) and not op.attributes.get("axis"):
            return Decision({values: sharded(), rows: have[rows], like: sharded()}, {op.writes[0]: sharded()})
    return None


def _counts(have: Mapping[Var, Placement], numbers: Var, counted: Var) -> bool:
    """Whether the numbers count the rows that each worker has of a value."""
    placement = have[numbers]
    return placement.kind is Kind.NUMBERS and have[counted] == sharded() and (counted.shape or (None,))[0] == placement.rows

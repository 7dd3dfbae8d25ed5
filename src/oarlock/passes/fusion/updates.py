"""Fusion of updates: what the gradient of a weight is made of is added to the weight, and no gradient is stored."""

from collections import Counter

from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var
from oarlock.passes.rewriter import declare, new_op, reader_counts
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.size_check import has_obligations

__all__ = ["fuse_updates"]


def fuse_updates(program: Program, catalogue: Catalogue) -> int:
    """Let updates of `program` take the products, or the rows, that their gradients are made of; return how many those were.

    Before                                     After
        g = linear_dw(x, dy)                       w@NEXT = sgd_addmm(w, x, dy, rate)
        w@NEXT = sgd(w, g, rate)

        g = scatter_add(dy, ids, w)                w@NEXT = sparse_sgd(w, ids, dy, rate)
        w@NEXT = sgd(w, g, rate)

        g = linear_dw(x, dy)                       v@NEXT = addmm_tn(v, x, dy, scale=mu)
        w@NEXT, v@NEXT = momentum(w, g, v, rate)   w@NEXT = sgd(w, v@NEXT, rate)

        g = matrix_transpose(linear_dw(x, dy))     g = linear_dw(dy, x)

    Of a sum of gradients each is taken, one after another, and what is left over is added as before. Legal where
    nothing else reads the gradient. Sums are rounded in another order: values change in their last bits. Saves the memory of the
    gradient and writing and reading it, for rows of a table all of its other rows; costs keeping what it is made of until the
    update. Does not apply to momentum with `nesterov` and to Adam, which need the gradient itself, to rows where there is any
    momentum, to sizes that the run has to check, nor to gradients that are scaled, clipped or fetched.
    A product that is transposed, as is that of a weight that
    stands in rows of outputs, is computed the other way round for any of them.
    """
    reads = Counter(reader_counts(program))
    reads.update(program.targets.values())
    count = _turn_products(program, catalogue, reads)
    for block in inner_blocks(program.main):
        ops: list[Op] = []
        for op in block.ops:
            is_proved = op.type in _WRITERS and not has_obligations(catalogue.get(op.type), op)
            parts, rest = _parts(op, reads) if is_proved else ([], [])
            ops += _WRITERS[op.type](op, parts, rest) if parts else [op]
            count += len(parts)
        block.ops = ops
    if count:
        program.changed()
    return count


def _turn_products(program: Program, catalogue: Catalogue, reads: Counter[Var]) -> int:
    """Compute products that are only transposed the other way round; return how many."""
    if any(catalogue.find(type) is not standard.find(type) for type in ("linear_dw", "matrix_transpose")):
        return 0  # its operators are someone else's
    count = 0
    for block in inner_blocks(program.main):
        for number, op in enumerate(block.ops):
            product = op.inputs["x"][0].op if op.type == "matrix_transpose" else None
            if product is None or product.type != "linear_dw" or product.block is not block or reads[product.writes[0]] != 1:
                continue
            x, dout = product.inputs["x"][0], product.inputs["dout"][0]
            block.ops[number] = new_op(op, "linear_dw", {"x": dout, "dout": x}, {"dw": op.writes[0]}, catalogue)
            reads.update(product.reads)
            reads[product.writes[0]] = 0
            count += 1
    return count


def _parts(update: Op, reads: Counter[Var]) -> tuple[list[Op], list[Var]]:
    """The products, and the rows put into a table, that the gradient of an update is the sum of, and the other terms of that sum."""
    parts: list[Op] = []
    rest: list[Var] = []
    pending = list(update.inputs["grad"])
    while pending:
        var = pending.pop(0)
        op = var.op if reads[var] == 1 else None
        if op is not None and op.block is update.block and (op.type == "linear_dw" or (update.type == "sgd" and _puts_rows(op))):
            parts.append(op)
        elif op is not None and op.block is update.block and op.type == "sum":
            pending = [*op.inputs["xs"], *pending]
        else:
            rest.append(var)
    return ([], []) if update.attributes.get("nesterov") else (parts, rest)


def _puts_rows(op: Op) -> bool:
    """Whether an op puts rows into a table, and sizes tell how many; of empty rows they do not."""
    if op.type != "scatter_add" or "axis" in op.attributes:
        return False
    table, rows = op.writes[0].shape, op.inputs["rows"][0].shape
    return rows is not None and table is not None and 0 not in table


def _sgd(update: Op, parts: list[Op], rest: list[Var]) -> list[Op]:
    """``param - rate * (parts + rest)``."""
    rate = update.inputs["learning_rate"]
    (held,), (result,) = update.inputs["param"], update.outputs["next"]
    ops: list[Op] = []
    for number, part in enumerate(parts):
        following = result if number == len(parts) - 1 and not rest else declare(result, result.shape)
        type, inputs = ("sparse_sgd", _rows(part, ops)) if part.type == "scatter_add" else ("sgd_addmm", part.inputs)
        ops.append(_new_op(update, type, {"param": (held,), **inputs, "learning_rate": rate}, {"next": (following,)}))
        held = following
    if rest:
        total, added = _added(update, rest)
        ops += [*added, _new_op(update, "sgd", {"param": (held,), "grad": (total,), "learning_rate": rate}, update.outputs)]
    return ops


def _rows(put: Op, ops: list[Op]) -> dict[str, tuple[Var, ...]]:
    """The numbers of rows and the values that an op adds to a table, in one dimension of rows; what makes them so is appended to `ops`."""
    (rows,), (values,), table = put.inputs["rows"], put.inputs["values"], put.writes[0]
    if len(rows.shape) != 1:  # type: ignore[arg-type]
        count = size.product(rows.shape)  # type: ignore[arg-type]
        shapes = {rows: (count,), values: (count, *table.shape[1:])}  # type: ignore[index]
        made = {var: declare(var, shape, block=table.block) for var, shape in shapes.items()}
        ops += [_new_op(put, "reshape", {"x": (var,)}, {"y": (made[var],)}, shape=Sizes(shape)) for var, shape in shapes.items()]
        rows, values = made[rows], made[values]
    return {"rows": (rows,), "values": (values,)}


def _momentum(update: Op, products: list[Op], rest: list[Var]) -> list[Op]:
    """The velocity, ``mu velocity + products + rest``, and a step along it."""
    (held,), (velocity,) = update.inputs["velocity"], update.outputs["next_velocity"]
    ops: list[Op] = []
    for number, product in enumerate(products):
        following = velocity if number == len(products) - 1 and not rest else declare(velocity, velocity.shape)
        scale = 1.0 if number else update.attributes["mu"]
        ops.append(_new_op(update, "addmm_tn", {"base": (held,), **product.inputs}, {"total": (following,)}, scale=scale))
        held = following
    if rest:
        ops.append(_new_op(update, "sum", {"xs": (held, *rest)}, {"y": (velocity,)}))
    step = {"param": update.inputs["param"], "grad": (velocity,), "learning_rate": update.inputs["learning_rate"]}
    return [*ops, _new_op(update, "sgd", step, {"next": update.outputs["next"]})]


_WRITERS = {"sgd": _sgd, "momentum": _momentum}


def _added(update: Op, terms: list[Var]) -> tuple[Var, list[Op]]:
    """A variable that is the sum of some, and the op that adds them up where there are several."""
    if len(terms) == 1:
        return terms[0], []
    total = declare(terms[0], terms[0].shape)
    return total, [_new_op(update, "sum", {"xs": tuple(terms)}, {"y": (total,)})]


def _new_op(update: Op, type: str, inputs: dict[str, tuple[Var, ...]], outputs: dict[str, tuple[Var, ...]], **attributes: object) -> Op:
    made = Op(update.block, type, inputs, outputs, attributes, role=update.role, location=update.location)
    for var in made.writes:
        var.op = made
    return made

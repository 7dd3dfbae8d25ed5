"""Multi-output fusion: gradients of one op that a kernel can compute together are computed by that kernel."""

from collections.abc import Iterator

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var, are_same
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.fused_operator import FusedBackward

__all__ = ["multi_output_fusion"]


def multi_output_fusion(program: Program, catalogue: Catalogue) -> int:
    """Join what fused operators compute together; return how many fused ops that made.

    Before                                               After
        dx = conv2d_dx(filter, dy, x_shape)                  dx, dfilter, dbias = conv2d_backward(x, filter, dy)
        dfilter = conv2d_dfilter(x, dy, filter_shape)
        dbias = conv2d_dbias(dy)

    Legal for ops of one block that read the same values by the names that their fused operator gives them, with equal attributes, where
    what they read is there before the first of them, or nothing reads what they give before the last of them. Joint kernels may round
    sums in another order than the kernels of the parts: values change in their last bits. Costs nothing: it reads what its parts
    read. Does not apply to parts in different blocks, so a loop that returns the sums of a part must have given it away before: this
    pass comes after those on loops, and is applied once. Of two fused operators the one of more parts is taken.
    """
    joints = sorted(catalogue.fused_operators.values(), key=lambda each: -len(each.parts))
    return sum(_join_in(block, each) for block in inner_blocks(program.main) for each in joints)


def _join_in(block: Block, operator: FusedBackward) -> int:
    first, *others = operator.parts
    candidates = {part: [op for op in block.ops if op.type == part.type] for part in operator.parts}
    if not all(candidates.values()):
        return 0
    shared = {part: sorted(_read_by(operator, first) & _read_by(operator, part)) for part in others}
    partners: dict[tuple[object, ...], list[Op]] = {}
    for part, names in shared.items():
        for op in candidates[part]:
            partners.setdefault((part, *_values(operator, op, names)), []).append(op)
    places: list[Op | None] = list(block.ops)  # an op that was joined leaves an empty place, so that others keep theirs
    number = {op: place for place, op in enumerate(block.ops)}
    count = 0
    for op in candidates[first]:
        found = [op]
        for part, names in shared.items():
            near = partners.get((part, *_values(operator, op, names)), []) if names else []
            match = next((each for each in near if _inputs(operator, [*found, each]) is not None), None)
            if match is None:
                break
            found.append(match)
        if len(found) == len(operator.parts) and _replace(places, sorted(number[each] for each in found), _joined(operator, found)):
            count += 1
            for part, names in shared.items():
                near = partners[(part, *_values(operator, op, names))]
                near[:] = [each for each in near if each not in found]
    block.ops = [op for op in places if op is not None]
    block.program.changed()
    return count


def _read_by(operator: FusedBackward, part: Operator) -> set[str]:
    """The inputs of the fused operator that a part reads more of than the shape."""
    shapes = {slot.name for slot in part.signature.inputs if slot.shape_only}
    return {name for slot, name in operator.reads[part].items() if slot not in shapes}


def _named(operator: FusedBackward, op: Op) -> Iterator[tuple[str, bool, tuple[Var, ...]]]:
    """The inputs of `op`: the fused operator's name of each, whether only its shape is read, the variables."""
    part = next(each for each in operator.parts if each.type == op.type)
    for slot in part.signature.inputs:
        yield operator.reads[part][slot.name], slot.shape_only, op.inputs.get(slot.name, ())


def _values(operator: FusedBackward, op: Op, names: list[str]) -> list[tuple[Var, ...]]:
    return [vars for wanted in names for name, shape_only, vars in _named(operator, op) if name == wanted and not shape_only]


def _inputs(operator: FusedBackward, ops: list[Op]) -> dict[str, tuple[Var, ...]] | None:
    """The inputs of the fused op of `ops`, by slot; None where they do not agree."""
    found: dict[str, tuple[Var, ...]] = {}
    shapes: dict[str, tuple[Var, ...]] = {}
    attributes: dict[str, object] = {}
    for op in ops:
        for name, shape_only, vars in _named(operator, op):
            known = shapes if shape_only else found
            if name in known and not (_same_shapes(known[name], vars) if shape_only else are_same(known[name], vars)):
                return None
            known[name] = vars
        part = next(each for each in operator.parts if each.type == op.type)
        if any(attributes.setdefault(name, op.attributes.get(name)) != op.attributes.get(name) for name in part.attributes):
            return None
    if any(name in found and not _same_shapes(found[name], vars) for name, vars in shapes.items()):
        return None
    return shapes | found


def _same_shapes(some: tuple[Var, ...], others: tuple[Var, ...]) -> bool:
    return [var.shape for var in some] == [var.shape for var in others] and all(var.shape is not None for var in some)


def _joined(operator: FusedBackward, ops: list[Op]) -> Op:
    """The fused op of `ops`, one of each part."""
    inputs = _inputs(operator, ops) or {}
    attributes = {name: value for op in ops for name, value in op.attributes.items()}
    return Op(
        ops[0].block,
        operator.type,
        {slot.name: inputs[slot.name] for slot in operator.signature.inputs if inputs.get(slot.name)},
        {op.type: op.writes for op in ops},
        {name: attributes[name] for name in operator.attributes if name in attributes},
        role=ops[0].role,
        location=ops[0].location,
    )


def _replace(places: list[Op | None], numbers: list[int], joined: Op) -> bool:
    """Put the fused op in the place of its parts; False where there is no place that it could stand at."""
    first, last = numbers[0], numbers[-1]
    between = [op for op in places[first : last + 1] if op is not None]
    read, given = set(joined.reads), set(joined.writes)
    if not any(var in read for op in between for var in op.writes):
        place = first
    elif not any(var in given for op in between for var in op.reads):
        place = last
    else:
        return False
    for number in numbers:
        places[number] = None
    places[place] = joined
    for var in joined.writes:
        var.op = joined
    return True

"""Multi-tensor updates: one op updates the parameters that are updated alike."""

from collections.abc import Hashable

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.signature import Slot
from oarlock.registry.size_check import has_obligations

__all__ = ["multi_tensor_updates"]

MULTI_TENSOR = {"sgd": "multi_tensor_sgd", "momentum": "multi_tensor_momentum", "adam": "multi_tensor_adam"}
"""An operator, and the one that does the same for many. Its slots are those of the first, in their order; what is variadic there
differs from parameter to parameter, and what is not is shared."""


def multi_tensor_updates(program: Program, catalogue: Catalogue) -> int:
    """Group the updates of `program`; return how many ops went into others.

    Before                                     After
        w@NEXT = sgd(w, w@GRAD, rate)              w@NEXT, b@NEXT = multi_tensor_sgd([w, b], [w@GRAD, b@GRAD], rate)
        b@NEXT = sgd(b, b@GRAD, rate)

    Legal for ops of one operator, with equal attributes, that share the rate and the step, on parameters of one dtype and place, with
    sizes that the run need not check. They
    are computed where the last of them stood, or before the first op that reads one of their results. The bits are the same.
    Gradients live until then, which is until the step ends as a rule anyway. Does not apply to a parameter that is alone.
    """
    return sum(_group_in(block, catalogue) for block in inner_blocks(program.main))


def _group_in(block: Block, catalogue: Catalogue) -> int:
    ops: list[Op] = []
    waiting: dict[Hashable, list[Op]] = {}
    count = 0

    def write(key: Hashable) -> int:
        alike = waiting.pop(key)
        ops.append(_joined(alike, catalogue) if len(alike) > 1 else alike[0])
        return len(alike) if len(alike) > 1 else 0

    for op in block.ops:
        read = set(op.reads)
        for key in [key for key, alike in waiting.items() if op.is_commit or any(var in read for one in alike for var in one.writes)]:
            count += write(key)
        if op.type in MULTI_TENSOR and not has_obligations(catalogue.get(op.type), op):
            waiting.setdefault(_kind(op, catalogue), []).append(op)
        else:
            ops.append(op)
    for key in list(waiting):
        count += write(key)
    if count:
        block.ops = ops
        block.program.changed()
    return count


def _slots(op: Op, catalogue: Catalogue) -> list[tuple[Slot, Slot]]:
    """The input slots of an update, each with that of the operator on many."""
    one, many = catalogue.get(op.type).signature.inputs, catalogue.get(MULTI_TENSOR[op.type]).signature.inputs
    return list(zip(one, many, strict=True))


def _kind(op: Op, catalogue: Catalogue) -> Hashable:
    """The key that updates share which may be grouped."""
    shared = tuple(op.inputs[one.name] for one, many in _slots(op, catalogue) if not many.variadic)
    return op.type, tuple(sorted(op.attributes.items())), shared, op.writes[0].dtype, op.reads[0].place


def _joined(alike: list[Op], catalogue: Catalogue) -> Op:
    """One op that does what the ops `alike` do."""
    first = alike[0]
    inputs = {
        many.name: tuple(op.inputs[one.name][0] for op in alike) if many.variadic else first.inputs[one.name]
        for one, many in _slots(first, catalogue)
    }
    outputs = zip(catalogue.get(first.type).signature.outputs, catalogue.get(MULTI_TENSOR[first.type]).signature.outputs, strict=True)
    joined = Op(
        first.block,
        MULTI_TENSOR[first.type],
        inputs,
        {many.name: tuple(op.outputs[one.name][0] for op in alike) for one, many in outputs},
        first.attributes,
        role=first.role,
        location=first.location,
    )
    for var in joined.writes:
        var.op = joined
    return joined

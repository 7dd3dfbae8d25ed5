"""Programs of format version 1, which had other names for operators, slots and attributes."""

from collections.abc import Callable

from oarlock.old_names import OLD_ATTRIBUTES, OLD_OPERATORS, OLD_SLOTS
from oarlock.proto import program_pb2 as wire

__all__ = ["replace_old_names"]


def replace_old_names(program: wire.ProgramDesc, *, is_known: Callable[[str], bool] = lambda _: False) -> None:
    """Give the ops of `program` the names of today, in place. An operator that `is_known` by what is an old name keeps it."""
    for block in program.blocks:
        for op in block.ops:
            old = op.type
            if old in OLD_OPERATORS and is_known(old):
                continue
            op.type = OLD_OPERATORS.get(old, old)
            slots, attributes = OLD_SLOTS.get(old, {}), OLD_ATTRIBUTES.get(old, {})
            for slot in (*op.inputs, *op.outputs):
                slot.name = slots.get(slot.name, slot.name)
            for attribute in op.attributes:
                attribute.name = attributes.get(attribute.name, attribute.name)

"""Programs of earlier versions of the format, which had other names for operators, slots and attributes."""

from collections.abc import Callable

from oarlock.old_names import OLD_ATTRIBUTES, OLD_OPERATORS, OLD_SLOTS
from oarlock.proto import program_pb2 as wire

__all__ = ["replace_old_names", "replace_old_slots"]


def replace_old_names(program: wire.ProgramDesc, *, is_known: Callable[[str], bool] = lambda _: False) -> None:
    """Give the ops of `program` the names of today, in place. An operator that `is_known` by what is an old name keeps it."""
    for block in program.blocks:
        for op in block.ops:
            old = op.type
            if old in OLD_OPERATORS and is_known(old):
                continue
            op.type = OLD_OPERATORS.get(old, old)
            _rename_slots(op, old)
            attributes = OLD_ATTRIBUTES.get(old, {})
            for attribute in op.attributes:
                attribute.name = attributes.get(attribute.name, attribute.name)


def replace_old_slots(program: wire.ProgramDesc) -> None:
    """Give slots the names of today, in place, in a program of version 2, whose early files had a few other ones.

    Its operators have the names of today: one that is called as an operator of version 1 was is somebody's own.
    """
    for block in program.blocks:
        for op in block.ops:
            if op.type not in OLD_OPERATORS:
                _rename_slots(op, op.type)


def _rename_slots(op: wire.OpDesc, old: str) -> None:
    """Give the slots of `op`, which was called `old`, the names of today."""
    slots = OLD_SLOTS.get(old, {})
    for slot in (*op.inputs, *op.outputs):
        slot.name = slots.get(slot.name, slot.name)

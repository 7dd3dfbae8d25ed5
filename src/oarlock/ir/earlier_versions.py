"""Compatibility with earlier format versions, which used other names for operators, slots and attributes."""

from collections.abc import Callable

from oarlock.old_names import OLD_ATTRIBUTES, OLD_OPERATORS, OLD_SLOTS
from oarlock.proto import program_pb2 as wire

__all__ = ["replace_old_names", "replace_old_slots"]


def replace_old_names(program: wire.ProgramDesc, *, is_known: Callable[[str], bool] = lambda _: False) -> None:
    """Replace the old names in a version 1 program, in place. Operators for which `is_known` is true keep their names."""
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
    """Replace the old slot names in a version 2 program, in place.

    Early version 2 files used a few other slot names. An operator with a version 1 name is a custom operator and is left unchanged.
    """
    for block in program.blocks:
        for op in block.ops:
            if op.type not in OLD_OPERATORS:
                _rename_slots(op, op.type)


def _rename_slots(op: wire.OpDesc, old: str) -> None:
    """Replace the old slot names of `op`, whose type was `old`."""
    slots = OLD_SLOTS.get(old, {})
    for slot in (*op.inputs, *op.outputs):
        slot.name = slots.get(slot.name, slot.name)

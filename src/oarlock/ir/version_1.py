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
            for items, names in (((*op.inputs, *op.outputs), OLD_SLOTS.get(old)), (op.attributes, OLD_ATTRIBUTES.get(old))):
                for item in items if names else ():
                    item.name = names.get(item.name, item.name)

"""Appending ops from OpDesc messages, for other languages."""

from oarlock.errors import VerifyError
from oarlock.ir.attribute import read_attribute
from oarlock.ir.block import Block
from oarlock.ir.operation import Op, Role
from oarlock.proto import program_pb2 as wire
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import append_op

__all__ = ["append_desc"]


def append_desc(block: Block, desc: wire.OpDesc, *, catalogue: Catalogue = standard) -> Op:
    """Append to `block` the op that `desc` describes and return it. Undeclared outputs are declared with inferred types.

    Names are those visible in `block`; a block attribute is the index of a nested block. Raises VerifyError for an invalid attribute or
    role, else the same as `append_op`.
    """
    blocks = block.program.blocks
    attributes: dict[str, object] = {}
    for item in desc.attributes:
        try:
            attributes[item.name] = blocks[item.block] if item.WhichOneof("value") == "block" else read_attribute(item)
        except (KeyError, ValueError, IndexError) as error:
            raise VerifyError(f'{desc.type}: attribute "{item.name}" is not readable: {error}', op=desc.type) from error
    if desc.role not in tuple(Role):
        raise VerifyError(f"{desc.type}: role {desc.role} does not exist", op=desc.type)
    inputs = {slot.name: list(slot.vars) for slot in desc.inputs}
    outputs = {slot.name: list(slot.vars) for slot in desc.outputs}
    with block.program.write_as(Role(desc.role)):
        return append_op(block, desc.type, inputs, outputs, attributes, desc.name, catalogue=catalogue)

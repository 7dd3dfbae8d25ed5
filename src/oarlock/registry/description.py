"""OpDesc -> op: what any language that can write the message can append."""

from oarlock.errors import VerifyError
from oarlock.ir.attribute import read_attribute
from oarlock.ir.block import Block
from oarlock.ir.operation import Op, Role
from oarlock.proto import program_pb2 as wire
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import append_op

__all__ = ["append_desc"]


def append_desc(block: Block, desc: wire.OpDesc, *, catalogue: Catalogue = standard) -> Op:
    """Append to `block` the op that `desc` describes; return it. Outputs that are not declared are, with inferred types.

    Names are those that `block` sees; a block attribute is the number of a block of its program, inside `block`. Raises
    VerifyError for an attribute or a role that is not readable, else what `append_op` raises.
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

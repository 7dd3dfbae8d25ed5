"""OpDesc and OpProto messages: appending ops and describing operators, for documentation and other languages."""

from oarlock.errors import VerifyError
from oarlock.ir.attribute import read_attribute
from oarlock.ir.block import Block
from oarlock.ir.operation import Op, Role
from oarlock.proto import program_pb2 as wire
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import append_op
from oarlock.registry.declaration import Operator

__all__ = ["append_desc", "op_proto"]


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


def op_proto(operator: Operator) -> wire.OpProto:
    """Return the declaration of `operator` as a message."""
    proto = wire.OpProto(type=operator.type, signature=str(operator.signature), doc=operator.doc, gradients=sorted(operator.gradients))
    for slots, messages in ((operator.signature.inputs, proto.inputs), (operator.signature.outputs, proto.outputs)):
        for slot in slots:
            messages.add(
                name=slot.name,
                dtype=slot.dtype,
                shape=slot.shape_text,
                optional=slot.optional,
                variadic=slot.variadic,
                intermediate=slot.name in operator.intermediate,
                shape_only=slot.shape_only,
            )
    for spec in operator.attributes.values():
        default = "" if spec.required else str(spec.default)
        proto.attributes.add(name=spec.name, type=spec.type_text, default=default, required=spec.required)
    return proto

"""OpProto messages: descriptions of operators for documentation and other languages."""

from oarlock.proto import program_pb2 as wire
from oarlock.registry.declaration import Operator

__all__ = ["op_proto"]


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

"""The text of a call: of a kernel, of a variant of it, or of the expression that one lowers to."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from oarlock.backend.torch.expression import Expression
from oarlock.backend.torch.private import with_autograd
from oarlock.backend.torch.variants import variants_of
from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator

if TYPE_CHECKING:
    from oarlock.runtime.plan.buffer_assignment import Call
    from oarlock.runtime.plan.emitter import Emitter

__all__ = ["check_sizes", "pack", "text_of"]

_IMAGES = 4  # axes of those, and of filters, whose elements may lie in another order


def text_of(emitter: "Emitter", op: Op, call: "Call") -> str:
    """The source text that computes `op` by that call."""
    operator = emitter.catalogue.get(op.type)
    if call.destination:
        stem = f"{op.type}_out"
    elif call.kernel is operator.kernel:
        stem = op.type
    elif operator.unchecked_kernel is not None and call.kernel is operator.unchecked_kernel.kernel:
        stem = f"{op.type}_unchecked"
    else:
        stem = f"{op.type}_number" if call.kernel is variants_of(operator).number else f"{op.type}_in_place"
    if op in emitter.packed:
        (_, kernel) = next(iter(variants_of(operator).prepacked.values()))
    else:
        kernel = call.kernel
        expression = _expression(emitter, operator, op, call)
        if expression is not None:
            texts = {slot.name: emitter.values(slot, op)[0] for slot in operator.signature.inputs if slot.name in expression.names}
            texts |= {name: emitter.attribute(op, name, value) for name, value in op.attributes.items() if name in expression.names}
            return expression.written({"out": call.destination or "", **texts}, partial(emitter.source.bind_torch, stem))
    given = {slot.name: emitter.values(slot, op) for slot in operator.signature.inputs}
    context = emitter.context(op) if operator.wants_context else None
    keywords = {name: emitter.attribute(op, name, value) for name, value in op.attributes.items()}
    if call.destination is not None:
        keywords["out"] = call.destination
    if op in emitter.packed:
        keywords["packed"] = emitter.packed[op]
    if _asks_alone(kernel) and _are_alone(emitter, op):
        keywords["alone"] = "True"
    if not operator.is_trusted:
        kernel = emitter.above_autograd.setdefault(kernel, with_autograd(kernel))
    return operator.call_text(emitter.source.bind(stem, kernel), given, keywords, context)


def check_sizes(emitter: "Emitter", op: Op) -> None:
    """Write the call that refuses sizes that `op` cannot take, where values decide them."""
    check = emitter.size_checks.get(op)
    if check is None or op in emitter.lines[-1].cut:  # a piece has the size that the op names
        return
    numbers, slots = emitter.numbers, emitter.catalogue.get(op.type).signature.inputs
    vars = [var for slot in slots for var in op.inputs.get(slot.name, ())]
    shapes = ("()" if numbers.has(var) or numbers.vanishes(var) else emitter.shape(var) for var in vars)
    emitter.source.write(f"{emitter.source.bind('check_sizes', check)}({', '.join(shapes)})", op)


def pack(emitter: "Emitter", op: Op, slot: str) -> None:
    """Write the packing of an input of `op`."""
    pack, _ = variants_of(emitter.catalogue.get(op.type)).prepacked[slot]
    attributes = (f"{name}={emitter.attribute(op, name, value)}" for name, value in op.attributes.items())
    arguments = ", ".join([emitter.source.name(op.inputs[slot][0]), *attributes])
    emitter.source.write(f"{emitter.packed[op]} = {emitter.source.bind('pack', pack)}({arguments}) if for_many else None", op)


def _asks_alone(kernel: Callable[..., object]) -> bool:
    """Whether a variant in destination is to be told what is alone in its memory."""
    return "alone" in (getattr(kernel, "__kwdefaults__", None) or ())


def _are_alone(emitter: "Emitter", op: Op) -> bool:
    """Whether `op` may move the elements of what it writes over, images among them: no other tensor, and no step of a loop, lies there."""
    line = emitter.lines[-1]
    sources = line.buffers.sources(op)
    return any(len(var.shape or ()) == _IMAGES for var in sources) and all(
        line.buffers.is_alone(var) and line.buffers.root(var) not in line.sequences and line.steps_of(var) is None for var in sources
    )


def _expression(emitter: "Emitter", operator: Operator, op: Op, call: "Call") -> Expression | None:
    """The expression that the variant lowers to for the inputs of `op`, if it is known: for tensors, not for stacks that may be uneven."""
    line, found = emitter.lines[-1], variants_of(operator).expressions_of(call.kernel)
    if not found or not all(map(line.buffers.is_even, op.reads)):
        return None
    optional = {slot.name for slot in operator.signature.inputs if slot.optional}
    given = {name for name in optional if op.inputs.get(name)}
    for expression in found:
        if (
            optional & expression.names == given
            and all(len(op.inputs[slot][0].shape or ()) in ranks for slot, ranks in expression.ranks.items())
            and all(op.attributes.get(name) == value for name, value in expression.when.items())
            and expression.at in (None, emitter.device.type)
            and (expression.dense is None or line.buffers.root(op.inputs[expression.dense][0]) in line.dense)
        ):
            return expression
    return None

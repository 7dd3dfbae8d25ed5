"""The text of a call: of a kernel, of a form of it, or of what that comes to."""

from functools import partial
from typing import TYPE_CHECKING

from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator
from oarlock.registry.expression import Expression
from oarlock.runtime.plan.placement import Form

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter

__all__ = ["text_of"]


def text_of(emitter: "Emitter", op: Op, form: Form) -> str:
    """What computes `op` by that form."""
    operator = emitter.catalogue.get(op.type)
    slots = operator.signature.inputs
    if form.place:
        stem = f"{op.type}_into"
    elif form.kernel is operator.kernel:
        stem = op.type
    else:
        stem = f"{op.type}_as_number" if form.kernel is operator.number_form else f"{op.type}_in_place"
    if op in emitter.packed:
        (_, kernel) = next(iter(operator.packed_forms.values()))
    else:
        kernel = form.kernel
        expression = _expression(emitter, operator, op, form)
        if expression is not None:
            texts = {slot.name: emitter.argument(slot, op.inputs[slot.name]) for slot in slots if slot.name in expression.names}
            texts |= {name: emitter.attribute(op, name, value) for name, value in op.attributes.items() if name in expression.names}
            return expression.written({"out": form.place or "", **texts}, partial(emitter.source.bind_torch, stem))
    arguments = [emitter.argument(slot, op.inputs.get(slot.name, ())) for slot in slots]
    while arguments and arguments[-1] == "None":
        arguments.pop()
    if operator.wants_context:
        arguments.insert(0, emitter.context(op))
    arguments += [f"{name}={emitter.attribute(op, name, value)}" for name, value in op.attributes.items()]
    if form.place is not None:
        arguments.append(f"out={form.place}")
    if op in emitter.packed:
        arguments.append(f"packed={emitter.packed[op]}")
    return f"{emitter.source.bind(stem, kernel)}({', '.join(arguments)})"


def _expression(emitter: "Emitter", operator: Operator, op: Op, form: Form) -> Expression | None:
    """What the form comes to for what `op` is given, if that is known: for tensors, not for stacks that may be uneven."""
    line, found = emitter.lines[-1], operator.expressions.get(form.kernel, ())  # type: ignore[arg-type]
    if not found or not all(map(line.placement.is_even, op.reads)):
        return None
    optional = {slot.name for slot in operator.signature.inputs if slot.optional}
    given = {name for name in optional if op.inputs.get(name)}
    for expression in found:
        if (
            optional & expression.names == given
            and all(len(op.inputs[slot][0].shape or ()) in ranks for slot, ranks in expression.ranks.items())
            and all(op.attributes.get(name) == value for name, value in expression.when.items())
            and (expression.at is None or (emitter.device is not None and emitter.device.type == expression.at))
            and (expression.dense is None or line.placement.root(op.inputs[expression.dense][0]) in line.dense)
        ):
            return expression
    return None

"""Fused operators: what several operators compute of the same values, computed by one kernel that shares the work."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from oarlock.errors import DeclarationError
from oarlock.registry.attribute_spec import AttributeSpec, require_default
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Signature, Slot, TensorType, renamed

__all__ = ["FusedBackward", "fused_backward"]


class FusedBackward(Operator):
    """Computes what its `parts` compute, each of one output, of inputs that they share. Programs use the parts; a pass joins them.

    An output is called as the part that gives it, an input as the parts call it, but for what `names` renames.
    """

    def __init__(self, kernel: Callable[..., object], parts: Sequence[Operator], names: Mapping[str, str]):
        self.parts = tuple(parts)
        self.names = dict(names)
        rounding = {part.sensitive_to for part in parts}
        sensitive_to = "place" if "place" in rounding else "layout" if "layout" in rounding else None
        trusted = all(part.is_trusted for part in parts)
        super().__init__(kernel.__name__, kernel, None, sensitive_to=sensitive_to, trusted=trusted, catalogue=parts[0].catalogue)

    @cached_property
    def reads(self) -> dict[Operator, dict[str, str]]:
        """For each part, which input of this operator each of its inputs is. Raises DeclarationError where there is none."""
        parameters = {each.name for each in inspect.signature(self.kernel).parameters.values() if each.kind is not each.KEYWORD_ONLY}

        def find(slot: Slot, part: Operator) -> str:
            name = self.names.get(slot.name, slot.name)
            for known in (name, name.removesuffix("_shape")) if slot.shape_only else (name,):
                if known in parameters:
                    return known
            raise DeclarationError(f"{self.type}: nothing stands for {slot.name}, which {part.type} reads")

        return {part: {slot.name: find(slot, part) for slot in part.signature.inputs} for part in self.parts}

    @cached_property
    def signature(self) -> Signature:
        slots: dict[str, Slot] = {}
        for part, names in self.reads.items():
            for slot in part.signature.inputs:
                known = slots.get(names[slot.name])
                if known is None or known.shape_only:  # what one part reads, and another only the shape of, is read
                    slots[names[slot.name]] = renamed(slot, names[slot.name], summed=False)
        parameters = [each for each in inspect.signature(self.kernel).parameters.values() if each.kind is not each.KEYWORD_ONLY]
        unread = [each.name for each in parameters if each.name not in slots or slots[each.name].optional != (each.default is None)]
        if unread:
            raise DeclarationError(f"{self.type}: its parts do not read {', '.join(unread)} so")
        outputs = [part.signature.outputs[0] for part in self.parts]
        given = tuple(renamed(slot, part.type, axes=None, like=None, summed=False) for part, slot in zip(self.parts, outputs, strict=True))
        return Signature(tuple(slots[each.name] for each in parameters), given)

    @cached_property
    def attributes(self) -> dict[str, AttributeSpec]:
        known = {name: spec for part in self.parts for name, spec in part.attributes.items()}
        parameters = inspect.signature(self.kernel).parameters
        taken = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
        if set(taken) != set(known):
            raise DeclarationError(f"{self.type}: its attributes are {taken}, those of its parts {list(known)}")
        for name in taken:
            require_default(self.type, known[name], parameters[name])
        return {name: known[name] for name in taken}

    def infer(
        self, given: Mapping[str, Sequence[TensorType]], attributes: Mapping[str, object], fresh: Callable[[], str]
    ) -> dict[str, list[TensorType]]:
        """Infer the outputs of each part. Raises the errors of the parts."""
        self.signature.bind(given)
        inferred: dict[str, list[TensorType]] = {}
        for part, names in self.reads.items():
            types = {slot: given[name] for slot, name in names.items() if name in given}
            chosen = {name: value for name, value in attributes.items() if name in part.attributes}
            (inferred[part.type],) = part.infer(types, chosen, fresh).values()
        return inferred


def fused_backward(*parts: Operator, names: Mapping[str, str] | None = None) -> Callable[[Callable[..., object]], FusedBackward]:
    """Declare the kernel that computes what several operators compute, and shares the work.

        @fused_backward(conv2d_dx, conv2d_dfilter)
        def conv2d_backward(x, filter, dy, *, stride, padding):
            ...

    It returns what they return, in their order. Its parameters are their inputs, and all their attributes. Where one of them reads
    only the shape of what another reads, as `x_shape`, it takes `x`. `names` says what an input of a part is called here, where the
    part calls it otherwise. Sums may be rounded in another order than the parts round them.
    """
    return lambda kernel: FusedBackward(kernel, parts, names or {})

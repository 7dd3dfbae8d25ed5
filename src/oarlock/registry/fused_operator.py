"""Fused operators: one kernel that computes several operators on the same values and shares work."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from oarlock.errors import DeclarationError
from oarlock.registry.attributes import AttributeSpec, require_default
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Signature, Slot, TensorType, renamed

__all__ = ["FusedBackward", "fused_backward"]


class FusedBackward(Operator):
    """Computes the single outputs of its `parts` from shared inputs. Programs use the parts; a pass fuses them.

    Outputs are named after the parts. Inputs have the names that the parts use, except for those renamed by `names`.
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
        """For each part, the mapping from its inputs to inputs of this operator. Raises DeclarationError if one is missing."""
        parameters = {each.name for each in inspect.signature(self.kernel).parameters.values() if each.kind is not each.KEYWORD_ONLY}

        def find(slot: Slot, part: Operator) -> str:
            name = self.names.get(slot.name, slot.name)
            for known in (name, name.removesuffix("_shape")) if slot.shape_only else (name,):
                if known in parameters:
                    return known
            raise DeclarationError(f"{self.type}: no input provides {slot.name}, which {part.type} reads")

        return {part: {slot.name: find(slot, part) for slot in part.signature.inputs} for part in self.parts}

    @cached_property
    def signature(self) -> Signature:
        slots: dict[str, Slot] = {}
        for part, names in self.reads.items():
            for slot in part.signature.inputs:
                known = slots.get(names[slot.name])
                if known is None or known.shape_only:  # an input that one part reads and another uses only for its shape is read
                    slots[names[slot.name]] = renamed(slot, names[slot.name], summed=False)
        parameters = [each for each in inspect.signature(self.kernel).parameters.values() if each.kind is not each.KEYWORD_ONLY]
        unread = [each.name for each in parameters if each.name not in slots or slots[each.name].optional != (each.default is None)]
        if unread:
            raise DeclarationError(f"{self.type}: its parts do not read {', '.join(unread)}, or not as declared")
        outputs = [part.signature.outputs[0] for part in self.parts]
        given = tuple(renamed(slot, part.type, axes=None, like=None, summed=False) for part, slot in zip(self.parts, outputs, strict=True))
        return Signature(tuple(slots[each.name] for each in parameters), given)

    @cached_property
    def attributes(self) -> dict[str, AttributeSpec]:
        known = {name: spec for part in self.parts for name, spec in part.attributes.items()}
        parameters = inspect.signature(self.kernel).parameters
        taken = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
        if set(taken) != set(known):
            raise DeclarationError(f"{self.type}: its attributes are {taken}, but those of its parts are {list(known)}")
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
    """Declare a kernel that computes several operators and shares work.

        @fused_backward(conv2d_dx, conv2d_dfilter)
        def conv2d_backward(x, filter, dy, *, stride, padding):
            ...

    It returns their results in order. Its parameters are their inputs and all their attributes. If one part needs only the shape of
    another's input, as `x_shape`, it takes `x`. `names` maps input names of the parts to different names here. Sums may be rounded in a
    different order than in the parts.
    """
    return lambda kernel: FusedBackward(kernel, parts, names or {})

"""Consistency of a gradient's inputs with its forward operator: the gradient of an output must have the shape of that output."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import differ
from oarlock.ir.size import Shape, format_shape
from oarlock.registry.attributes import REQUIRED
from oarlock.registry.gradient import parameter_source
from oarlock.registry.signature import Slot, TensorType

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["ForwardCall", "find_forward_call", "require_forward_shapes"]


class ForwardCall(NamedTuple):
    """The forward call whose gradient is computed: the types of its inputs, its attributes, and the known types of its outputs.

    `outputs` are (slot of the forward operator, slot of the gradient, its types).
    """

    given: dict[str, list[TensorType]]
    attributes: dict[str, object]
    outputs: list[tuple[str, str, Sequence[TensorType]]]


def find_forward_call(
    operator: "Operator", given: Mapping[str, Sequence[TensorType]], attributes: Mapping[str, object]
) -> ForwardCall | None:
    """Return the forward call, or None if the gradient does not have all of its inputs and attributes."""
    forward = operator.forward
    if forward is None or forward.block_attributes:
        return None
    unread = {name: spec for name, spec in forward.attributes.items() if name not in operator.attributes}
    if any(spec.type is not float for spec in unread.values()):  # floats, such as a padding value, do not affect shapes
        return None
    numbers = {name: 0.0 if spec.default is REQUIRED else spec.default for name, spec in unread.items()}
    call = ForwardCall({}, numbers | {name: value for name, value in attributes.items() if name in forward.attributes}, [])
    shape_only: list[tuple[str, str]] = []
    dtypes = {}
    for slot in operator.signature.inputs:
        types = given.get(slot.name)
        source = parameter_source(forward.signature, slot.name)
        if types is None or source is None:
            continue
        kind, of = source
        if forward.signature.input(of.name) is of:
            call.given[of.name] = list(types)
            shape_only += [(of.name, of.dtype)] if kind == "shape" else []
        else:
            call.outputs.append((of.name, slot.name, types))
        if kind != "shape" and types:
            dtypes.setdefault(of.dtype, types[0].dtype)
    known = [(forward.signature.input(name), types) for name, types in call.given.items()]
    known += [(forward.signature.output(name), types) for name, _, types in call.outputs]
    for slot in forward.signature.inputs:  # an input that the gradient does not read, such as one in which the operator is linear
        same = next((types for other, types in known if other and _have_one_shape(other, slot)), None)
        if same is not None and slot.name not in call.given and not slot.optional:
            call.given[slot.name] = [TensorType(dtypes.get(slot.dtype, type.dtype), type.shape) for type in same]
    for name, kind in shape_only:  # the dtype of a shape-only input may have changed since
        call.given[name] = [TensorType(dtypes.get(kind, dtype), shape) for dtype, shape in call.given[name]]
    is_whole = all(slot.name in call.given or slot.optional for slot in forward.signature.inputs)
    return call if is_whole and call.outputs else None


def _have_one_shape(slot: Slot, other: Slot) -> bool:
    """Return whether the signature gives two slots the same shape."""
    return slot.shape_text == other.shape_text and bool(slot.shape_text) and not slot.variadic and not other.variadic


def require_forward_shapes(operator: "Operator", given: Mapping[str, Sequence[TensorType]], attributes: Mapping[str, object]) -> None:
    """Check the shapes of a gradient's inputs against its forward operator. Raises ShapeError, and the errors of `infer`."""
    call = find_forward_call(operator, given, attributes)
    if call is None or operator.forward is None:
        return
    inferred = operator.forward.infer(call.given, call.attributes, lambda: "unknown")
    for output, slot, types in call.outputs:
        for type, expected in zip(types, inferred[output], strict=False):
            if not _may_have(type.shape, expected.shape):
                made = f"{output} of {operator.forward.type} has shape {format_shape(expected.shape)}"
                raise ShapeError(f"{slot} is {format_shape(type.shape)}, but {made}")


def _may_have(shape: Shape | None, expected: Shape | None) -> bool:
    """Return whether `shape` is compatible with `expected`; "unknown" matches any size."""
    if shape is None or expected is None:
        return True
    return len(shape) == len(expected) and not any(
        differ(size, other) for size, other in zip(shape, expected, strict=True) if "unknown" not in (size, other)
    )

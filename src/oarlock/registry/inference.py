"""Inference of output types, by an operator's own function or its signature."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from oarlock.errors import OarlockError, ShapeError
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.registry.attributes import require_known_symbols
from oarlock.registry.forward_shapes import require_forward_shapes
from oarlock.registry.signature import TensorType

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["infer_types"]


def infer_types(
    operator: "Operator", given: Mapping[str, Sequence[TensorType]], attributes: Mapping[str, object], fresh: Callable[[], str]
) -> dict[str, list[TensorType]]:
    """Return the types of the outputs, by slot; `fresh` returns a name for a size that depends on values.

    Raises ShapeError, DTypeError or ArgumentError if the arguments do not fit.
    """
    attributes = {name: spec.default for name, spec in operator.attributes.items() if spec.added_later} | {
        name: operator.attributes[name].unknown(value, fresh) if isinstance(value, Var) else value for name, value in attributes.items()
    }
    signature = operator.signature
    binding = signature.bind(given)
    if operator.forward is not None:
        require_forward_shapes(operator, given, attributes)
    shapes = [type.shape for types in given.values() for type in types if type.shape is not None]
    for name in operator.told_attributes:
        require_known_symbols(operator, name, attributes.get(name), shapes)
    if operator.shape_check is not None and len(shapes) == sum(map(len, given.values())):
        _refusing(operator.shape_check, *operator.in_order(given), **attributes)
    if operator.infer_function is None:
        return {name: [type] for name, type in signature.infer(binding, attributes, fresh).items()}
    results = operator.results(_refusing(operator.infer_function, *operator.in_order(given), **attributes))
    typed: dict[str, list[TensorType]] = {}
    for slot in signature.outputs:
        typed[slot.name] = [
            item if isinstance(item, TensorType) else TensorType(signature.infer_dtype(slot, binding, attributes), item)
            for item in results[slot.name]
        ]
    return _name_fresh_sizes(typed, fresh)


def _refusing(rule: Callable[..., object], *types: object, **attributes: object) -> object:
    """Call a shape rule. A ValueError, as raised by rules shared with kernels, becomes a ShapeError."""
    try:
        return rule(*types, **attributes)
    except OarlockError:
        raise
    except ValueError as error:
        raise ShapeError(str(error)) from None


def _name_fresh_sizes(typed: dict[str, list[TensorType]], fresh: Callable[[], str]) -> dict[str, list[TensorType]]:
    """Replace each size that depends on values by a new name."""
    names: dict[str, str] = {}
    for size in (size for items in typed.values() for type in items for size in type.shape or ()):
        if isinstance(size, str) and size.startswith("?") and size not in names:
            names[size] = fresh()
    if not names:
        return typed

    def named(shape: Shape | None) -> Shape | None:
        return None if shape is None else tuple(names.get(size, size) if isinstance(size, str) else size for size in shape)

    return {slot: [TensorType(dtype, named(shape)) for dtype, shape in types] for slot, types in typed.items()}

"""Symbols in shape attributes, for which the kernel gets numbers known from the op's inputs.

So `broadcast_to(x, ids, shape=("n", 4))` has as many rows as `ids`, whose declared shape contains n. Only the op's own inputs are used.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from oarlock.errors import ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.size import Shape, evaluate, format_shape, linear, names_in, told_together
from oarlock.registry.attribute_spec import UnknownSizes

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["asks_inputs", "numbers_in", "require_told", "shapes_of"]


def asks_inputs(operator: "Operator", name: str, value: object) -> bool:
    """Return whether the kernel needs numbers for the symbols of attribute `name`."""
    if name not in operator.told_attributes or not isinstance(value, Sizes) or isinstance(value, UnknownSizes):
        return False
    return sum(isinstance(size, str) for size in value) > _left(operator, name, value)


def _left(operator: "Operator", name: str, value: Sizes) -> int:
    """Return how many symbols of an attribute the kernel can infer by itself, besides a size of -1; 0 if there are no elements."""
    return 0 if 0 in value else max(0, operator.told_attributes[name] - value.count(-1))


def require_told(operator: "Operator", name: str, value: object, shapes: Sequence[Shape]) -> None:
    """Check that the inputs determine all symbols of an attribute that the kernel needs. Raises ShapeError."""
    if not isinstance(value, Sizes) or not asks_inputs(operator, name, value):
        return
    there = {size for shape in shapes for size in shape if isinstance(size, str)}
    known = there | {found[0] for found in map(linear, there) if found}
    unknown = [size for size in value if isinstance(size, str) and size not in known and not names_in(size) <= known]
    if len(unknown) > _left(operator, name, value):
        slot = next((slot.name for slot in operator.signature.inputs if slot.variadic), None)
        where = f"; pass variables of that size as {slot}=[...]" if slot else ""
        raise ShapeError(f"no input determines {' and '.join(dict.fromkeys(unknown))} of {format_shape(value)}{where}")


def numbers_in(sizes: Sizes, shapes: Iterable[Shape], given: Iterable[Sequence[int]]) -> Sizes:
    """Return the sizes with symbols replaced by numbers, for inputs declared with `shapes` and given others. Unknown symbols stay."""
    return _remembered(sizes, tuple(shapes), tuple(map(tuple, given)))


@lru_cache(maxsize=4096)  # consecutive steps have the same arguments
def _remembered(sizes: Sizes, shapes: tuple[Shape, ...], given: tuple[tuple[int, ...], ...]) -> Sizes:
    values = told_together(shapes, given)
    found = ((size, evaluate(size, values)) for size in sizes)
    return Sizes(size if number is None else number for size, number in found)


def shapes_of(op: Op, operator: "Operator") -> tuple[Shape, ...]:
    """Return the declared shapes of an op's inputs, in slot order."""
    return tuple(var.shape or () for slot in operator.signature.inputs for var in op.inputs.get(slot.name, ()))

"""Symbols among the sizes of an attribute: the inputs of the op tell their numbers, and the kernel is given these.

So `broadcast_to(x, ids, shape=("n", 4))` has as many rows as `ids`, whose type says how many n is. Nothing else of the program is asked.
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
    """Whether the kernel is given numbers for the symbols of the attribute `name`."""
    if name not in operator.told_attributes or not isinstance(value, Sizes) or isinstance(value, UnknownSizes):
        return False
    return sum(isinstance(size, str) for size in value) > _left(operator, name, value)


def _left(operator: "Operator", name: str, value: Sizes) -> int:
    """The number of symbols of an attribute that the kernel finds by itself, beside a size of -1: none if there are no elements."""
    return 0 if 0 in value else max(0, operator.told_attributes[name] - value.count(-1))


def require_told(operator: "Operator", name: str, value: object, shapes: Sequence[Shape]) -> None:
    """Raises ShapeError where inputs of these shapes do not tell as many symbols of an attribute as the kernel has to be given."""
    if not isinstance(value, Sizes) or not asks_inputs(operator, name, value):
        return
    there = {size for shape in shapes for size in shape if isinstance(size, str)}
    known = there | {found[0] for found in map(linear, there) if found}
    unknown = [size for size in value if isinstance(size, str) and size not in known and not names_in(size) <= known]
    if len(unknown) > _left(operator, name, value):
        slot = next((slot.name for slot in operator.signature.inputs if slot.variadic), None)
        where = f"; {slot}=[...] takes variables that have such a size" if slot else ""
        raise ShapeError(f"no input tells {' and '.join(dict.fromkeys(unknown))} of {format_shape(value)}{where}")


def numbers_in(sizes: Sizes, shapes: Iterable[Shape], given: Iterable[Sequence[int]]) -> Sizes:
    """The sizes with numbers for symbols, where inputs declared to be of `shapes` are given of others. What they do not tell stays."""
    return _remembered(sizes, tuple(shapes), tuple(map(tuple, given)))


@lru_cache(maxsize=4096)  # a step asks for the same ones as the step before
def _remembered(sizes: Sizes, shapes: tuple[Shape, ...], given: tuple[tuple[int, ...], ...]) -> Sizes:
    values = told_together(shapes, given)
    found = ((size, evaluate(size, values)) for size in sizes)
    return Sizes(size if number is None else number for size, number in found)


def shapes_of(op: Op, operator: "Operator") -> tuple[Shape, ...]:
    """The shapes that the inputs of an op are declared to have, in the order of its slots."""
    return tuple(var.shape or () for slot in operator.signature.inputs for var in op.inputs.get(slot.name, ()))

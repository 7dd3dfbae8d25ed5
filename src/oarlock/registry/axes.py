"""The axes of an operator, by `axis_attribute`: an attribute that names the axis it computes across, several, or all in a new order."""

from collections.abc import Mapping
from types import UnionType
from typing import TypeGuard

from oarlock.registry.declaration import Operator

__all__ = ["attributes_on_stacks", "axes_alone", "is_along_last"]


def axes_alone(operator: Operator, attributes: Mapping[str, object], rank: int) -> int:
    """How many leading axes are computed alone; `rank` is that of the tensor with most axes. 0 where nothing is said."""
    first = attributes.get(operator.axis_attribute or "", operator.axis_left_out)
    if _names_some(first, operator):
        return min(axis if axis >= 0 else rank + axis for axis in first)
    if isinstance(first, tuple):
        return next((place for place, axis in enumerate(first) if axis != place), len(first))
    if not isinstance(first, int):
        return 0
    return first if first >= 0 else rank + first


def attributes_on_stacks(operator: Operator, attributes: Mapping[str, object]) -> dict[str, object] | None:
    """The attributes for inputs with one axis more in front, each index of which is then computed alone; None where nothing is said."""
    name = operator.axis_attribute or ""
    first = attributes.get(name)
    if is_along_last(operator, attributes):
        return dict(attributes)
    if _names_some(first, operator):
        return {**attributes, name: tuple(axis + 1 if axis >= 0 else axis for axis in first)}
    if isinstance(first, tuple):
        return {**attributes, name: (0, *(axis + 1 for axis in first))}
    if not isinstance(first, int):
        return None
    return {**attributes, name: first + 1 if first >= 0 else first}


def is_along_last(operator: Operator, attributes: Mapping[str, object]) -> bool:
    """Whether an operator computes across the last axis, since no other is named."""
    return operator.axis_left_out == -1 and operator.axis_attribute not in attributes


def _names_some(axes: object, operator: Operator) -> TypeGuard[tuple[int, ...]]:
    """Whether these are the axes that an operator computes across, one or several, and not all axes in another order."""
    kind = operator.attributes[operator.axis_attribute].type if operator.axis_attribute else None
    return isinstance(axes, tuple) and isinstance(kind, UnionType)

"""The axes that an operator computes across, from its `axis_attribute`: one axis, several, or a permutation of all."""

from collections.abc import Mapping
from types import UnionType
from typing import TypeGuard

from oarlock.registry.declaration import Operator

__all__ = ["attributes_on_stacks", "axes_alone", "is_along_last"]


def axes_alone(operator: Operator, attributes: Mapping[str, object], rank: int) -> int:
    """Return the number of leading axes whose indexes are computed independently, for the maximum rank `rank`. 0 if nothing is declared."""
    first = attributes.get(operator.axis_attribute or "", operator.axis_left_out)
    if _names_some(first, operator):
        return min(axis if axis >= 0 else rank + axis for axis in first)
    if isinstance(first, tuple):
        return next((place for place, axis in enumerate(first) if axis != place), len(first))
    if not isinstance(first, int):
        return 0
    return first if first >= 0 else rank + first


def attributes_on_stacks(operator: Operator, attributes: Mapping[str, object]) -> dict[str, object] | None:
    """Return the attributes for inputs with an additional leading axis that is computed independently; None if nothing is declared."""
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
    """Return whether an operator computes across the last axis because no axis is given."""
    return operator.axis_left_out == -1 and operator.axis_attribute not in attributes


def _names_some(axes: object, operator: Operator) -> TypeGuard[tuple[int, ...]]:
    """Return whether `axes` are the axes that an operator computes across, not a permutation of all axes."""
    kind = operator.attributes[operator.axis_attribute].type if operator.axis_attribute else None
    return isinstance(axes, tuple) and isinstance(kind, UnionType)

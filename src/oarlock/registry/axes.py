"""The axes of an operator, by `axis_attribute`: the attribute that names the first axis it computes across, or all in their new order."""

from collections.abc import Mapping

from oarlock.registry.declaration import Operator

__all__ = ["attributes_on_stacks", "axes_alone"]


def axes_alone(operator: Operator, attributes: Mapping[str, object], rank: int) -> int:
    """How many leading axes are computed alone; `rank` is that of the tensor with most axes. 0 where nothing is said."""
    first = attributes.get(operator.axis_attribute or "")
    if isinstance(first, tuple):
        return next((place for place, axis in enumerate(first) if axis != place), len(first))
    if not isinstance(first, int):
        return 0
    return first if first >= 0 else rank + first


def attributes_on_stacks(operator: Operator, attributes: Mapping[str, object]) -> dict[str, object] | None:
    """The attributes for inputs with one axis more in front, each index of which is then computed alone; None where nothing is said."""
    name = operator.axis_attribute or ""
    first = attributes.get(name)
    if isinstance(first, tuple):
        return {**attributes, name: (0, *(axis + 1 for axis in first))}
    if not isinstance(first, int):
        return None
    return {**attributes, name: first + 1 if first >= 0 else first}

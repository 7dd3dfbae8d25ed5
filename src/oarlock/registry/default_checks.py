"""Checks of gradients that nobody has to write, since the signature tells the shapes at which to look."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.signature import Signature, Slot

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["with_default_checks"]

_MANY: dict[str, list[tuple[tuple[int, ...], ...]]] = {
    "group": [((5, 2),), ((2,),), ((),)],
    "rank": [((5, 2),), ((2,),), ((),)],
    "broadcast": [((5, 2), (2,)), ((5, 1), (1, 2)), ((), (2, 2))],  # by turns
}
"""The sizes of the axes that stand for any number, by kind."""

_ELEMENTS = 4


def with_default_checks(operator: "Operator") -> tuple[Case | GradCheck | Rejects, ...]:
    """The cases of an operator, where each GradCheck that gives no input is one for each way to choose shapes.

    An operator that has gradients, and declares no GradCheck, has one that gives nothing. Nothing is added where the signature does not
    tell what to give: where an input that must be there holds integers, or an attribute has no default.
    """
    inputs = {slot.name for slot in operator.signature.inputs}
    cases = list(operator.declared_cases)
    shapes = list(_shapes(operator.signature))
    required = any(spec.required and spec.name != "random_id" for spec in operator.attributes.values())
    if operator.gradients and shapes and not required and not any(isinstance(case, GradCheck) for case in cases):
        cases.append(GradCheck())
    found: list[Case | GradCheck | Rejects] = []
    for case in cases:
        if isinstance(case, GradCheck) and inputs.isdisjoint(case.values) and shapes:
            found += [GradCheck(low=case.low, high=case.high, **given, **case.values) for given in shapes]
        else:
            found.append(case)
    return tuple(found)


def _shapes(signature: Signature) -> Iterator[dict[str, object]]:
    """Shapes for the inputs, by what many axes stand for; of those that may be left out all are there, and at last none.

    Row splits, `int64[n+1]`, cut what the first input leads with: into sequences of which one is empty, and at last nothing into one.
    """
    splits = {slot.name: [0, 1, 1, _ELEMENTS] for slot in signature.inputs if slot.dtype == "int64" and slot.shape_text.endswith("+1]")}
    inputs = [slot for slot in signature.inputs if slot.name not in splits]
    axes = dict.fromkeys(axis for slot in inputs for axis in slot.axes or ())
    many = [axis.kind for axis in axes if axis.kind in _MANY]
    names = [axis.name for axis in axes if axis.kind == "size"]
    if len(many) > 1 or len(many) + len(names) < len(axes) or not all(slot.axes is not None and _may_be_float(slot) for slot in inputs):
        return
    sizes = {name: int(name) if name.isdigit() else number for number, name in enumerate(names, start=3)}
    if splits and names:
        sizes[names[0]] = _ELEMENTS
    for stand_for in _MANY[many[0]] if many else [((),)]:
        yield {slot.name: _given(slot, sizes, stand_for[number % len(stand_for)]) for number, slot in enumerate(inputs)} | splits
    least = (2,) if many else ()
    if splits and names:
        yield {slot.name: _given(slot, {**sizes, names[0]: 0}, least) for slot in inputs} | {name: [0, 0] for name in splits}
    needed = [slot for slot in inputs if not slot.optional]
    if len(needed) < len(inputs):
        yield {slot.name: _given(slot, sizes, least) for slot in needed} | splits


def _may_be_float(slot: Slot) -> bool:
    return slot.dtype in ("float", "number", "shape") or len(slot.dtype) == 1


def _given(slot: Slot, sizes: Mapping[str, int], many: tuple[int, ...]) -> object:
    """The shape of an input, three times where it takes any number of tensors."""
    shape = tuple(size for axis in slot.axes or () for size in (many if axis.kind in _MANY else (sizes[axis.name],)))
    return [shape] * 3 if slot.variadic else shape

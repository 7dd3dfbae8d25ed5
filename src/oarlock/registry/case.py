"""Test cases of operators as data, which tests run and documentation shows, and default gradient checks derived from signatures."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oarlock.registry.dtype_class import CLASSES
from oarlock.registry.signature import Axis, Signature, Slot

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["Case", "GradCheck", "Rejects", "shapes_of_signature", "with_default_checks"]


class Case:
    """Inputs, attributes and expected outputs, by slot name.

        Case(x=[-1.0, 2.0], y=[0.0, 2.0])

    A list is a value. For a variadic slot, a tuple contains one value per tensor. Floating values are tested in float64 and float32.
    """

    def __init__(self, **values: object):
        self.values = values

    def __repr__(self) -> str:
        return f"Case({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


class GradCheck:
    """Arguments for which every gradient is compared with finite differences, in float64.

        GradCheck(logits=(4, 3), label=[0, 2, -100, 1])

    A tuple of numbers is a shape, filled with seeded random numbers between `low` and `high`; a list is a value; a list of tuples fills a
    variadic slot. A check without inputs takes the shapes from the signature, with the given attributes, once for each number of leading
    axes. An operator with gradients but without checks gets ``GradCheck()`` if its signature and attribute defaults determine the
    arguments.
    """

    def __init__(self, *, low: float = -1.0, high: float = 1.0, **values: object):
        self.low = low
        self.high = high
        self.values = values

    def __repr__(self) -> str:
        return f"GradCheck({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


@dataclass(frozen=True)
class Rejects:
    """Arguments that the operator rejects, with a message that contains `message`. Values are given as in GradCheck."""

    message: str
    values: dict[str, object]

    def __init__(self, message: str, **values: object):
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "values", values)


_MANY: dict[str, list[tuple[tuple[int, ...], ...]]] = {
    "group": [((5, 2),), ((2,),), ((),), ((0,),)],  # no rows is a legal number of rows
    "rank": [((5, 2),), ((2,),), ((),)],
    "broadcast": [((5, 2), (2,), (5, 1)), ((5, 1), (1, 2), ()), ((), (2, 2), (1,)), ((0, 1), (2,), (0, 2))],  # used in turn
}
"""Sizes to test for axes that match any number of dimensions, by kind."""

_SPLITS = ([0, 1, 1, 4], [0, 0])
_SIZES = (3, 4, 6, 7, 8, 9)  # different from those above, so that confused axes are noticed


def with_default_checks(operator: "Operator") -> tuple[Case | GradCheck | Rejects, ...]:
    """Return the cases of an operator, with each GradCheck without inputs expanded to one per choice of shapes.

    An operator with gradients but without a GradCheck gets a default one. Nothing is added if the signature does not determine the inputs:
    if a
    required input is an integer, or an attribute has no default.
    """
    inputs = {slot.name for slot in operator.signature.inputs}
    cases = list(operator.declared_cases)
    shapes = list(shapes_of_signature(operator.signature))
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


def shapes_of_signature(signature: Signature, sizes: Sequence[int] = _SIZES) -> Iterator[dict[str, object]]:
    """Yield shapes for the inputs, for each test size of axis groups.

    First all optional inputs are present, then each is omitted, finally all are. Row splits, `int64[n+1]`, divide the leading dimension of
    the first input: into sequences of which one is empty, and finally an empty dimension into one.
    """
    splits = [slot for slot in signature.inputs if slot.dtype == "int64" and slot.shape_text.endswith("+1]")]
    inputs = [slot for slot in signature.inputs if slot not in splits]
    axes = dict.fromkeys(axis for slot in inputs for axis in slot.axes or ())
    many = [axis.kind for axis in axes if axis.kind in _MANY]
    names = list(dict.fromkeys(axis.name.removesuffix("+1") for axis in axes if axis.kind == "size" and not axis.name.isdigit()))
    if len(many) > 1 or any(axis.kind not in ("size", *_MANY) for axis in axes):
        return
    if not all(slot.axes is not None and _may_be_float(slot) for slot in inputs):
        return
    cuts: list[dict[str, int]] = [{}]
    if splits:
        counted = [slot.shape_text[1:-3] for slot in splits]  # n for [n+1]
        elements = inputs[0].axes[0].name if inputs and inputs[0].axes else ""
        if elements not in names or elements in counted or not all(count.isidentifier() for count in counted):
            return
        cuts = [{elements: cut[-1], **dict.fromkeys(counted, len(cut) - 1)} for cut in _SPLITS]
    others = dict(
        zip((name for name in names if name not in cuts[0]), (size for size in sizes if size not in cuts[0].values()), strict=False)
    )
    if len(others) + len(set(names) & cuts[0].keys()) < len(names):
        return
    named = {**others, **cuts[0]}
    given: dict[str, object] = {slot.name: _SPLITS[0] for slot in splits}
    for stand_for in _MANY[many[0]] if many else [((),)]:
        yield _given(inputs, named, stand_for) | given
    least = [(2,) if many else ()]
    for cut, row_splits in zip(cuts[1:], _SPLITS[1:], strict=False):
        yield _given(inputs, {**named, **cut}, least) | {slot.name: row_splits for slot in splits}
    optional = [slot for slot in inputs if slot.optional]
    for left_out in [*([slot] for slot in optional if len(optional) > 1), optional]:
        if left_out:
            yield _given([slot for slot in inputs if slot not in left_out], named, least) | given


def _may_be_float(slot: Slot) -> bool:
    return slot.dtype.partition(".")[0] in CLASSES.keys() - {"integer"} or slot.dtype == "shape" or len(slot.dtype) == 1


def _given(inputs: Sequence[Slot], sizes: Mapping[str, int], stand_for: Sequence[tuple[int, ...]]) -> dict[str, object]:
    """Return the shapes of the inputs, three for a variadic one. Inputs with axis groups take the test sizes in turn."""
    turns = itertools.cycle(stand_for)
    found: dict[str, object] = {}
    for slot in inputs:
        shapes = []
        for _ in range(3 if slot.variadic else 1):
            many = next(turns) if any(axis.kind in _MANY for axis in slot.axes or ()) else ()
            shapes.append(tuple(size for axis in slot.axes or () for size in (many if axis.kind in _MANY else [_size(axis, sizes)])))
        found[slot.name] = shapes if slot.variadic else shapes[0]
    return found


def _size(axis: Axis, sizes: Mapping[str, int]) -> int:
    if axis.name.isdigit():
        return int(axis.name)
    return sizes[axis.name.removesuffix("+1")] + axis.name.endswith("+1")

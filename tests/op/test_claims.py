"""The promises of an operator that passes rely on: pure kernels, rows, and sums. `test_memory.py` tests where outputs lie."""

import itertools
from collections.abc import Callable

import pytest
import torch
from op.arguments import (
    DERIVED,
    FORWARD,
    AnyCase,
    Arguments,
    Tensors,
    arguments_of,
    cases_of,
    compute,
    root,
    root_arguments,
)
from op.at_each_case import at_each_case
from op.edges import row_shape, rows, strided, transposed
from tolerances import CLAIMS

from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.attributes import attributes_on_stacks, axes_alone

OPERATORS = [*FORWARD, *DERIVED]
USES = [(operator, name, case) for operator in OPERATORS for name, case in cases_of(operator, Case, GradCheck)]


def require_close(actual: Tensors | list[torch.Tensor], expected: Tensors | list[torch.Tensor]):
    torch.testing.assert_close(actual, expected, rtol=CLAIMS[0], atol=CLAIMS[1], equal_nan=True)


def same_bits(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in zip(actual, expected, strict=True))


# Kernels


def copied(arguments: Arguments) -> Arguments:
    return arguments.replaced(lambda _, tensor: tensor.clone())


@at_each_case(USES)
def test_a_kernel_leaves_its_inputs_as_they_were(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    before = copied(arguments)
    compute(operator, arguments)
    for slot, items in arguments.tensors.items():
        assert same_bits(items, before.tensors[slot]), f"{slot} was written"


@at_each_case((*use, arrange) for use in USES for arrange in (strided, transposed))
def test_a_kernel_gives_the_same_wherever_its_inputs_lie_in_memory(operator: Operator, case: AnyCase, arrange: Callable):
    arguments = arguments_of(operator, case)
    require_close(compute(operator, arguments.replaced(lambda _, tensor: arrange(tensor))), compute(operator, arguments))


# Rows and sums

SUMMING = [
    operator for operator in OPERATORS if operator.summed_outputs and not any(slot.leading_group for slot in operator.signature.inputs)
]
CLAIMING = [operator for operator in OPERATORS if (operator.row_group or operator.summed_outputs) and operator not in SUMMING]
CLAIMED = [
    (operator, name, case)
    for operator, name, case in USES
    if operator in CLAIMING and row_shape(root(operator), root_arguments(root(operator), case))
]


def cuts(operator: Operator, arguments: Arguments) -> tuple[list[Tensors], list[Tensors]]:
    """The results of the operator for each leading index alone, and for the first axis cut in two."""
    shape = row_shape(operator, arguments)
    middle = (shape[0] + 1) // 2
    alone = [rows(operator, arguments, lambda tensor, at=index: tensor[at]) for index in itertools.product(*map(range, shape))]
    halves = [rows(operator, arguments, lambda tensor, at=half: tensor[at]) for half in (slice(middle), slice(middle, None))]
    return [compute(operator, part) for part in alone], [compute(operator, part) for part in halves]


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in CLAIMING])
def test_every_claim_is_tried_on_two_rows(operator: Operator):
    tried = [arguments_of(operator, case) for each, _, case in CLAIMED if each is operator]
    assert any(row_shape(operator, arguments)[0] > 1 for arguments in tried), f"{operator.type} needs a case of two rows"


@at_each_case(use for use in CLAIMED if use[0].row_group)
def test_each_row_is_computed_alone(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    alone, halves = cuts(operator, arguments)
    for slot, (whole,) in compute(operator, arguments).items():
        require_close([torch.stack([part[slot][0] for part in alone]).reshape(whole.shape)], [whole])
        require_close([torch.cat([part[slot][0] for part in halves])], [whole])


@at_each_case(use for use in CLAIMED if use[0].summed_outputs)
def test_a_summed_output_is_the_sum_over_the_rows(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    whole = compute(operator, arguments)
    none = compute(operator, rows(operator, arguments, lambda tensor: tensor[:0]))
    for slot in operator.summed_outputs:
        for parts in cuts(operator, arguments):
            require_close([torch.stack([part[slot][0] for part in parts]).sum(0)], whole[slot])
        require_close(none[slot], [torch.zeros_like(whole[slot][0])])


@at_each_case(use for use in USES if use[0] in SUMMING)
def test_a_sum_over_any_axes_sums_a_stack(operator: Operator, case: AnyCase):
    """Where no axis is named, the claim is about one more: what is computed of a stack is the sum of what is computed of each."""
    arguments = arguments_of(operator, case)
    single, double = (copied(arguments) for _ in range(2))
    stacked = copied(arguments)
    for slot in operator.signature.inputs:
        if not slot.shape_only:
            double.tensors[slot.name] = [tensor * 2 for tensor in arguments.tensors[slot.name]]
            stacked.tensors[slot.name] = [torch.stack([tensor, tensor * 2]) for tensor in arguments.tensors[slot.name]]
    one, two, both = (compute(operator, given) for given in (single, double, stacked))
    for slot in operator.summed_outputs:
        require_close([one[slot][0] + two[slot][0]], both[slot])


# Products summed over dimensions

CONTRACTED = [use for use in USES if use[0].is_contraction]


def sizes_of(operator: Operator, arguments: Arguments) -> dict[tuple[str, int], int]:
    """The size of each dimension of the signature."""
    found: dict[tuple[str, int], int] = {}
    for slot in operator.signature.inputs:
        for tensor in arguments.tensors.get(slot.name, []):
            found |= dict(zip(slot.dimensions(tensor.dim()), tensor.shape, strict=True))
    return found


def part(operator: Operator, arguments: Arguments, dimension: tuple[str, int], which: slice, *, adds: bool) -> Arguments:
    """The arguments with a part of a dimension; without what is added to the products unless this part `adds` it."""
    slots = {slot.name: slot for slot in operator.signature.inputs}

    def taken(slot: str, tensor: torch.Tensor) -> torch.Tensor:
        dimensions = slots[slot].dimensions(tensor.dim())
        if dimension in dimensions:
            return tensor.movedim(dimensions.index(dimension), 0)[which].movedim(0, dimensions.index(dimension))
        return torch.zeros_like(tensor) if slots[slot].optional and not adds else tensor

    return arguments.replaced(taken)


@pytest.mark.parametrize("operator", [operator for operator in OPERATORS if operator.is_contraction], ids=lambda operator: operator.type)
def test_every_dimension_of_a_contraction_is_tried_in_two_parts(operator: Operator):
    tried = [sizes_of(operator, arguments_of(operator, case)) for each, _, case in CONTRACTED if each is operator]
    named = {name for sizes in tried for name, _ in sizes}
    assert named == {name for sizes in tried for (name, _), size in sizes.items() if size > 1}


@at_each_case(CONTRACTED)
def test_a_contraction_sums_over_each_dimension_that_an_output_has_not(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    whole = compute(operator, arguments)
    for dimension, size in sizes_of(operator, arguments).items():
        for slot in operator.signature.outputs:
            (expected,) = whole[slot.name]
            dimensions = slot.dimensions(expected.dim())
            kept = dimension in dimensions
            cut = [slice(size // 2), slice(size // 2, None)]
            first, second = (
                compute(operator, part(operator, arguments, dimension, which, adds=kept or not number))[slot.name][0]
                for number, which in enumerate(cut)
            )
            require_close([torch.cat([first, second], dimensions.index(dimension)) if kept else first + second], [expected])


# Inputs in which an operator is linear


@at_each_case(
    (operator, f"{name}-{slot}", slot, case)
    for operator, name, case in USES
    for slot in operator.linear_in
    if root_arguments(operator, case).tensors[slot][0].is_floating_point()
)
def test_an_operator_is_linear_in_the_inputs_that_it_says(operator: Operator, slot: str, case: AnyCase):
    """With what its gradient reads of what may be left out, such as a factor; and without all, for a bias is no part of it."""
    optional = frozenset(each.name for each in operator.signature.inputs if each.optional)
    whole = arguments_of(operator, case)
    for left_out in {optional, optional.difference(operator.gradients[slot].parameters)}:  # often the same
        arguments = Arguments({name: items for name, items in whole.tensors.items() if name not in left_out}, whole.attributes)
        other = arguments.replaced(lambda name, tensor: tensor.flip(0) if name == slot and tensor.ndim else tensor)
        added = arguments.replaced(lambda name, tensor, other=other: other.tensors[name][0] - 2 * tensor if name == slot else tensor)
        one, two = compute(operator, arguments), compute(operator, other)
        expected = {name: [y - 2 * x for x, y in zip(one[name], two[name], strict=True)] for name in one}
        require_close(compute(operator, added), expected)


# Axes in front of those that are computed across


def named(operator: Operator, arguments: Arguments) -> dict[str, object]:
    """The attributes as an op has them."""
    converted = operator.convert_attributes(arguments.attributes)
    return {name: value for name, value in converted.items() if value is not None}


ALONG = [
    (operator, name, case)
    for operator, name, case in USES
    if operator.axis_attribute and attributes_on_stacks(operator, named(operator, arguments_of(operator, case))) is not None
]


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if operator.axis_attribute])
def test_what_is_computed_across_is_an_attribute_that_some_case_gives(operator: Operator):
    assert operator.axis_attribute in operator.attributes
    assert any(each is operator for each, *_ in ALONG)


@at_each_case(ALONG)
def test_one_axis_more_in_front_is_computed_alone(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    other = arguments.replaced(lambda _, tensor: tensor.flip(0) if tensor.ndim and tensor.dtype != torch.int64 else tensor)
    both = {slot: [torch.stack(pair) for pair in zip(items, other.tensors[slot], strict=True)] for slot, items in arguments.tensors.items()}
    stacked = attributes_on_stacks(operator, named(operator, arguments))
    assert stacked is not None
    actual = compute(operator, Arguments(both, stacked))
    one, two = compute(operator, arguments), compute(operator, other)
    for slot, items in actual.items():
        require_close(items, [torch.stack(pair) for pair in zip(one[slot], two[slot], strict=True)])


@at_each_case(ALONG)
def test_the_axes_in_front_are_computed_alone(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case)
    whole = compute(operator, arguments)
    tensors = [tensor for found in (arguments.tensors, whole) for items in found.values() for tensor in items]
    count = axes_alone(operator, named(operator, arguments), max(tensor.ndim for tensor in tensors))
    for axis in range(count):
        assert len({tensor.shape[axis] for tensor in tensors}) == 1
        middle = (tensors[0].shape[axis] + 1) // 2
        halves = [
            compute(operator, arguments.replaced(lambda _, tensor, at=axis, cut=cut: tensor.movedim(at, 0)[cut].movedim(0, at)))
            for cut in (slice(middle), slice(middle, None))
        ]
        for slot, items in whole.items():
            require_close([torch.cat(parts, axis) for parts in zip(*(half[slot] for half in halves), strict=True)], items)

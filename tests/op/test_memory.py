"""Where an operator's outputs lie in memory: what it says of that, and plans rely on."""

import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
from op.arguments import (
    DERIVED,
    DTYPES,
    FORWARD,
    Arguments,
    Tensors,
    by_slot,
    cases_of,
    compute,
    derive,
    has_floats,
    positional,
    root,
    root_arguments,
)
from op.edges import edges_of, strided, transposed

import oarlock as ol
from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.expression import Expression
from oarlock.runtime.plan.source import Source

OPERATORS = [*FORWARD, *DERIVED]
ARRANGEMENTS = [torch.clone, strided, transposed]


def at_cases_and_edges(operators: list[Operator]) -> list:
    """Each operator with a function that makes arguments of it."""
    found = []
    for operator, dtype in itertools.product(operators, DTYPES):
        cases = [
            (f"{name}-{DTYPES[dtype]}", case)
            for name, case in cases_of(operator, Case, GradCheck)
            if isinstance(case, GradCheck) or has_floats(root(operator), case) or dtype is torch.float64
        ]
        found += [pytest.param(operator, partial(_at_case, operator, case, dtype), id=name) for name, case in cases]
        found += [pytest.param(operator, partial(_at_edge, operator, edge), id=name) for name, edge in edges_of(operator, cases, dtype)]
    return found


def _at_case(operator: Operator, case: Case | GradCheck, dtype: torch.dtype) -> Arguments:
    return derive(operator, root_arguments(root(operator), case, dtype))


def _at_edge(operator: Operator, edge: Callable[[], Arguments]) -> Arguments:
    return derive(operator, edge())


def arranged(arguments: Arguments, arrange: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """The same arguments, each in memory of its own."""
    return arguments.replaced(lambda _, tensor: arrange(tensor))


def memory(tensors: list[torch.Tensor]) -> set[int]:
    """The addresses of the memory of tensors; empty ones have none."""
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}


def same_bits(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors hold the same: NaN where NaN is, and the same sign of 0."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if not actual.is_floating_point():
        return torch.equal(actual, expected)
    return torch.equal(actual.signbit(), expected.signbit()) and torch.equal(actual.nan_to_num(nan=77.0), expected.nan_to_num(nan=77.0))


# Views


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges(OPERATORS))
def test_outputs_share_the_memory_of_no_input_but_those_declared(operator: Operator, make: Callable[[], Arguments]):
    for arrange, training in itertools.product(ARRANGEMENTS, [True, False] if operator.wants_context else [True]):
        arguments = arranged(make(), arrange)
        outputs = compute(operator, arguments, training=training)
        found = memory([tensor for items in outputs.values() for tensor in items])
        shared = {slot for slot, items in arguments.tensors.items() if memory(items) & found}
        assert shared <= set(operator.views), f"it gives the memory of {', '.join(sorted(shared))}"


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in OPERATORS if not item.views]))
def test_outputs_share_no_memory_with_each_other_where_no_view_is_declared(operator: Operator, make: Callable[[], Arguments]):
    outputs = [tensor for items in compute(operator, make()).values() for tensor in items if tensor.numel()]
    assert len(memory(outputs)) == len(outputs)


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if operator.views])
def test_a_view_is_declared_of_an_input_that_is_seen_to_be_shared(operator: Operator):
    """What is declared and never so costs memory for nothing."""
    shared: set[str] = set()
    for param in at_cases_and_edges([operator]):
        for training in (True, False):
            arguments = arranged(param.values[1](), torch.clone)
            found = memory([tensor for items in compute(operator, arguments, training=training).values() for tensor in items])
            shared |= {slot for slot, items in arguments.tensors.items() if memory(items) & found}
    assert shared == set(operator.views)


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in OPERATORS if item.disjoint]))
def test_outputs_that_are_disjoint_share_no_element(operator: Operator, make: Callable[[], Arguments]):
    outputs = [tensor for items in compute(operator, arranged(make(), strided)).values() for tensor in items]
    for number, output in enumerate(outputs):
        output.fill_(number)
    assert all((output == number).all() for number, output in enumerate(outputs))


def test_parts_of_values_are_disjoint():
    assert {operator.type for operator in OPERATORS if operator.disjoint} == {"split", "split_like"}


SUMS_NOTHING = [item for item in OPERATORS if not (item.views or item.across or item.summed_outputs or item.effects)]


def rounds_by_layout(operator: Operator, make: Callable[[], Arguments]) -> bool:
    """Whether gaps in the memory of one of the inputs make a difference."""
    plain = compute(operator, arranged(make(), torch.clone))
    for slot in make().tensors:
        arguments = make().replaced(lambda name, tensor, slot=slot: column_slice(tensor).copy_(tensor) if name == slot else tensor.clone())
        found = compute(operator, arguments)
        if not all(same_bits(one, other) for name in plain for one, other in zip(plain[name], found[name], strict=True)):
            return True
    return False


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in SUMS_NOTHING if not item.rounds_by_layout]))
def test_an_operator_gives_the_same_bits_whether_there_are_gaps_in_memory_or_not(operator: Operator, make: Callable[[], Arguments]):
    assert not rounds_by_layout(operator, make)


@pytest.mark.parametrize("operator", [pytest.param(item, id=item.type) for item in OPERATORS if item.rounds_by_layout])
def test_what_rounds_by_layout_is_seen_to(operator: Operator):
    assert any(rounds_by_layout(*param.values) for param in at_cases_and_edges([operator]))


# The forms beside a kernel


def column_slice(like: torch.Tensor) -> torch.Tensor:
    """A tensor like `like` that is a slice of columns of a larger one: of its last axis, where it has one."""
    if not like.ndim:
        return torch.full((3,), 77, dtype=like.dtype)[1]
    wide = torch.full((*like.shape[:-1], like.shape[-1] + 5), 77, dtype=like.dtype)
    return wide[..., 2 : like.shape[-1] + 2]


def row_of_trips(like: torch.Tensor) -> torch.Tensor:
    """A tensor like `like` that is one row of a stack, as a loop fills one."""
    return torch.full((3, *like.shape), 77, dtype=like.dtype)[1]


PLACES = [partial(torch.full_like, fill_value=77, memory_format=torch.contiguous_format), column_slice, row_of_trips]


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in OPERATORS if item.into_kernel]))
def test_the_form_that_writes_into_a_tensor_gives_the_bits_of_the_kernel(operator: Operator, make: Callable[[], Arguments]):
    attributes = operator.convert_attributes(make().attributes)
    for place, arrange in itertools.product(PLACES, ARRANGEMENTS):
        arguments = arranged(make(), arrange)
        (expected,) = [tensor for items in compute(operator, arguments).values() for tensor in items]
        out = place(expected)
        address = out.data_ptr()
        whole = out if out._base is None else out._base
        around = whole.numel() - out.numel()
        result = operator.into_kernel(*positional(operator, arguments), out=out, **attributes)
        assert result is out
        assert out.data_ptr() == address, "it gives its argument other memory"
        assert same_bits(out, expected)
        out.fill_(77)
        assert (whole == out.new_full((), 77)).sum() == around + out.numel(), "it writes beside its place"
        before = make().tensors
        assert all(torch.equal(one, two) for slot in before for one, two in zip(arguments.tensors[slot], before[slot], strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("operator", [ol.op.sigmoid, ol.op.tanh, ol.op.gelu], ids=lambda operator: operator.type)
def test_columns_of_a_wider_tensor_give_the_bits_of_the_kernel_in_every_place(operator: Operator, dtype: torch.dtype):
    """Gates are such columns. The last elements of a row fill no vector of the processor: other loops round those differently."""
    attributes = operator.convert_attributes({})
    for rows, length in itertools.product((1, 3), range(1, 40)):
        wide = torch.linspace(-4, 4, rows * 3 * length, dtype=dtype).reshape(rows, 3 * length)
        for x in (wide[:, length : 2 * length], wide[:, :length].t(), wide[:, None, ::3], wide[:1, :length].expand(3, length)):
            expected = operator.kernel(x, **attributes)
            for place in PLACES:
                assert same_bits(operator.into_kernel(x, out=place(expected), **attributes), expected), (rows, length, x.stride())


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in OPERATORS if item.in_place_kernels]))
def test_the_form_that_reuses_inputs_gives_the_bits_of_the_kernel(operator: Operator, make: Callable[[], Arguments]):
    attributes = operator.convert_attributes(make().attributes)
    for (reused, kernel), arrange in itertools.product(operator.in_place_kernels.items(), ARRANGEMENTS):
        given = arranged(make(), arrange)
        expected = compute(operator, given)
        if not fits(operator, given, expected, reused):
            continue
        before = arranged(given, torch.clone)
        addresses = [tensor.data_ptr() for items in givers(operator, given, reused).values() for tensor in items]
        actual = by_slot(operator, kernel(*positional(operator, given), **attributes))
        for slot in expected:
            assert all(same_bits(one, other) for one, other in zip(actual[slot], expected[slot], strict=True))
        outputs = [tensor for slot in operator.signature.outputs[: len(reused)] for tensor in actual[slot.name]]
        assert [output.data_ptr() for output in outputs] == addresses, f"the memory of {reused} is not reused"
        count = {slot: len(items) for slot, items in givers(operator, given, reused).items()}
        others = {slot: items[count.get(slot, 0) :] for slot, items in given.tensors.items()}
        kept = {slot: items[count.get(slot, 0) :] for slot, items in before.tensors.items()}
        assert all(torch.equal(one, two) for slot in kept for one, two in zip(others[slot], kept[slot], strict=True))


@pytest.mark.parametrize(("operator", "make"), at_cases_and_edges([item for item in OPERATORS if item.expressions]))
def test_an_expression_gives_the_bits_of_what_it_stands_for(operator: Operator, make: Callable[[], Arguments]):
    in_place = {form: slots for slots, form in operator.in_place_kernels.items()}
    attributes = operator.convert_attributes(make().attributes)
    expressions = [(form, expression) for form, found in operator.expressions.items() for expression in found]
    for (form, expression), arrange in itertools.product(expressions, ARRANGEMENTS):
        given = arranged(make(), arrange)
        if not holds(expression, operator, given, attributes):
            continue
        expected = compute(operator, given)
        (result,) = [tensor for tensors in expected.values() for tensor in tensors]
        if form is operator.kernel:
            assert same_bits(evaluated(expression, given, attributes), result)
        elif form is operator.into_kernel:
            for place in PLACES:
                out = place(result)
                assert evaluated(expression, given, attributes, out) is out
                assert same_bits(out, result)
        elif fits(operator, given, expected, in_place[form]):
            (slot,) = in_place[form]
            (reused,) = given.tensors[slot]
            assert evaluated(expression, given, attributes) is reused
            assert same_bits(reused, result)


def holds(expression: Expression, operator: Operator, given: Arguments, attributes: dict[str, object]) -> bool:
    optional = [slot.name for slot in operator.signature.inputs if slot.optional]
    return (
        all(bool(given.tensors.get(slot)) is (slot in expression.names) for slot in optional)
        and all(given.tensors[slot][0].ndim in ranks for slot, ranks in expression.ranks.items())
        and all(attributes[name] == value for name, value in expression.when.items())
        and (expression.dense is None or given.tensors[expression.dense][0].stride(-1) == 1)
    )


def evaluated(expression: Expression, given: Arguments, attributes: dict[str, object], out: torch.Tensor | None = None) -> object:
    source = Source()
    values = {slot: tensors[0] for slot, tensors in given.tensors.items() if tensors} | attributes | {"out": out}
    return eval(
        expression.written({name: name for name in expression.names}, partial(source.bind_torch, "function")), source.bound | values
    )


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if operator.expressions])
def test_an_expression_says_what_becomes_of_everything_that_is_given(operator: Operator):
    forms = {form: slots for slots, form in operator.in_place_kernels.items()} | {operator.kernel: (), operator.into_kernel: ("out",)}
    asked = {slot.name for slot in operator.signature.inputs if not slot.optional and not slot.shape_only}
    known = {slot.name for slot in operator.signature.inputs} | operator.attributes.keys()
    assert not any(slot.variadic for slot in (*operator.signature.inputs, *operator.signature.outputs))
    for form, found in operator.expressions.items():
        for expression in found:
            assert ("out" in expression.names) is (forms[form] == ("out",))
            assert asked <= expression.names
            assert expression.names <= known | {"out"}
            assert operator.attributes.keys() <= expression.names | expression.when.keys()
            assert expression.ranks.keys() | {expression.dense or next(iter(asked))} <= asked


def givers(operator: Operator, given: Arguments, reused: tuple[str, ...]) -> Tensors:
    """The tensors that are to give their memory, by slot: the first, or where the output is variadic all of them."""
    pairs = zip(reused, operator.signature.outputs, strict=False)
    return {slot: given.tensors.get(slot, [])[: None if output.variadic else 1] for slot, output in pairs}


def fits(operator: Operator, given: Arguments, expected: Tensors, reused: tuple[str, ...]) -> bool:
    """Whether the inputs that are to give their memory are given, and have the shapes and dtypes of the outputs that take it."""
    pairs = []
    for items, output in zip(givers(operator, given, reused).values(), operator.signature.outputs, strict=False):
        wanted = expected[output.name] if output.variadic else expected[output.name][:1]
        pairs += itertools.zip_longest(items, wanted)
    return all(one is not None and one.shape == other.shape and one.dtype == other.dtype for one, other in pairs)


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS])
def test_what_is_said_of_memory_is_said_of_inputs(operator: Operator):
    named = [slot for slots in operator.in_place_kernels for slot in slots] + list(operator.views)
    assert all(operator.signature.input(slot) for slot in named)
    assert all(len(slots) <= len(operator.signature.outputs) for slots in operator.in_place_kernels)


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if operator.in_place_kernels])
def test_every_form_that_reuses_an_input_is_tried(operator: Operator):
    tried = set()
    for param in at_cases_and_edges([operator]):
        given = param.values[1]()
        expected = compute(operator, given)
        tried |= {slots for slots in operator.in_place_kernels if fits(operator, given, expected, slots)}
    assert tried == set(operator.in_place_kernels)

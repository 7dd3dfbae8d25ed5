"""Where an operator's outputs lie in memory: what it says of that, and plans rely on."""

import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
from op.arguments import Arguments, Tensors, by_slot, compute, positional
from op.arranging import ARRANGEMENTS, OPERATORS, arranged, at_every_use, column_slice, same_bits, same_up_to_place, uses_of
from op.edges import strided

import oarlock as ol
from oarlock.backend.torch.expression import Expression
from oarlock.backend.torch.variants import variants_of
from oarlock.registry import Operator
from oarlock.runtime.plan.source import Source


def memory(tensors: list[torch.Tensor]) -> set[int]:
    """The addresses of the memory of tensors; empty ones have none."""
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}


# Views


@at_every_use(OPERATORS)
def test_outputs_share_the_memory_of_no_input_but_those_declared(operator: Operator, make: Callable[[], Arguments]):
    for arrange, training in itertools.product(ARRANGEMENTS, [True, False] if operator.wants_context else [True]):
        _require_memory_as_declared(operator, arranged(make(), arrange), training)


@at_every_use(OPERATORS)
def test_outputs_share_no_other_memory_where_a_size_is_one(operator: Operator, make: Callable[[], Arguments]):
    """A tensor that is broadcast, reshaped or made contiguous may be a view then, and only then."""
    sizes = {size for items in make().tensors.values() for tensor in items for size in tensor.shape if size > 1}
    for alone in (sizes, *({size} for size in sizes)):
        arguments = make().replaced(
            lambda _, tensor, alone=alone: tensor[tuple(slice(1 if size in alone else None) for size in tensor.shape)]
        )
        try:
            compute(operator, arranged(arguments, torch.clone))
        except Exception:  # the attributes do not fit these sizes
            continue
        _require_memory_as_declared(operator, arranged(arguments, torch.clone), True)


def _require_memory_as_declared(operator: Operator, arguments: Arguments, training: bool) -> None:
    outputs = compute(operator, arguments, training=training)
    found = memory([tensor for items in outputs.values() for tensor in items])
    shared = {slot for slot, items in arguments.tensors.items() if memory(items) & found}
    assert shared <= set(operator.aliases), f"an output shares the memory of {', '.join(sorted(shared))}"


@at_every_use([item for item in OPERATORS if not item.aliases])
def test_outputs_share_no_memory_with_each_other_where_no_view_is_declared(operator: Operator, make: Callable[[], Arguments]):
    outputs = [tensor for items in compute(operator, make()).values() for tensor in items if tensor.numel()]
    assert len(memory(outputs)) == len(outputs)


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if operator.aliases])
def test_a_view_is_declared_of_an_input_that_is_seen_to_be_shared(operator: Operator):
    """A view that is declared and never seen costs memory for nothing."""
    shared: set[str] = set()
    for _, make in uses_of(operator):
        for training in (True, False):
            arguments = arranged(make(), torch.clone)
            found = memory([tensor for items in compute(operator, arguments, training=training).values() for tensor in items])
            shared |= {slot for slot, items in arguments.tensors.items() if memory(items) & found}
    assert shared == set(operator.aliases)


@at_every_use([item for item in OPERATORS if item.disjoint])
def test_outputs_that_are_disjoint_share_no_element(operator: Operator, make: Callable[[], Arguments]):
    outputs = [tensor for items in compute(operator, arranged(make(), strided)).values() for tensor in items]
    for number, output in enumerate(outputs):
        output.fill_(number)
    assert all((output == number).all() for number, output in enumerate(outputs))


def test_parts_of_values_are_disjoint():
    assert {operator.type for operator in OPERATORS if operator.disjoint} == {"split", "split_like"}


# The forms beside a kernel


def row_of_trips(like: torch.Tensor) -> torch.Tensor:
    """A tensor like `like` that is one row of a stack, as a loop fills one."""
    return torch.full((3, *like.shape), 77, dtype=like.dtype)[1]


PLACES = [partial(torch.full_like, fill_value=77, memory_format=torch.contiguous_format), column_slice, row_of_trips]


@at_every_use([item for item in OPERATORS if variants_of(item).out])
def test_the_form_that_writes_into_a_tensor_gives_what_the_kernel_gives(operator: Operator, make: Callable[[], Arguments]):
    attributes = operator.convert_attributes(make().attributes)
    for place, arrange in itertools.product(PLACES, ARRANGEMENTS):
        arguments = arranged(make(), arrange)
        (expected,) = [tensor for items in compute(operator, arguments).values() for tensor in items]
        out = place(expected)
        address = out.data_ptr()
        whole = out if out._base is None else out._base
        around = whole.numel() - out.numel()
        result = variants_of(operator).out(*positional(operator, arguments), out=out, **attributes)
        assert result is out
        assert out.data_ptr() == address, "it gives its argument other memory"
        assert same_up_to_place(operator, out, expected)
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
                assert same_bits(variants_of(operator).out(x, out=place(expected), **attributes), expected), (rows, length, x.stride())


@at_every_use([item for item in OPERATORS if variants_of(item).in_place])
def test_the_form_that_reuses_inputs_gives_what_the_kernel_gives(operator: Operator, make: Callable[[], Arguments]):
    attributes = operator.convert_attributes(make().attributes)
    for (reused, kernel), arrange in itertools.product(variants_of(operator).in_place.items(), ARRANGEMENTS):
        given = arranged(make(), arrange)
        expected = compute(operator, given)
        if not fits(operator, given, expected, reused):
            continue
        before = arranged(given, torch.clone)
        addresses = [tensor.data_ptr() for items in givers(operator, given, reused).values() for tensor in items]
        actual = by_slot(operator, kernel(*positional(operator, given), **attributes))
        for slot in expected:
            assert all(same_up_to_place(operator, one, other) for one, other in zip(actual[slot], expected[slot], strict=True))
        outputs = [tensor for slot in operator.signature.outputs[: len(reused)] for tensor in actual[slot.name]]
        assert [output.data_ptr() for output in outputs] == addresses, f"the memory of {reused} is not reused"
        count = {slot: len(items) for slot, items in givers(operator, given, reused).items()}
        others = {slot: items[count.get(slot, 0) :] for slot, items in given.tensors.items()}
        kept = {slot: items[count.get(slot, 0) :] for slot, items in before.tensors.items()}
        assert all(torch.equal(one, two) for slot in kept for one, two in zip(others[slot], kept[slot], strict=True))


@at_every_use([item for item in OPERATORS if variants_of(item).expressions])
def test_an_expression_gives_what_it_stands_for(operator: Operator, make: Callable[[], Arguments]):
    in_place = {form: slots for slots, form in variants_of(operator).in_place.items()}
    attributes = operator.convert_attributes(make().attributes)
    expressions = [(form, expression) for form, found in variants_of(operator).expressions.items() for expression in found]
    for (form, expression), arrange in itertools.product(expressions, ARRANGEMENTS):
        given = arranged(make(), arrange)
        if not holds(expression, operator, given, attributes):
            continue
        expected = compute(operator, given)
        (result,) = [tensor for tensors in expected.values() for tensor in tensors]
        if form is operator.kernel:
            assert same_up_to_place(operator, evaluated(expression, given, attributes), result)
        elif form is variants_of(operator).out:
            for place in PLACES:
                out = place(result)
                assert evaluated(expression, given, attributes, out) is out
                assert same_up_to_place(operator, out, result)
        elif fits(operator, given, expected, in_place[form]):
            (slot,) = in_place[form]
            (reused,) = given.tensors[slot]
            assert evaluated(expression, given, attributes) is reused
            assert same_up_to_place(operator, reused, result)


def holds(expression: Expression, operator: Operator, given: Arguments, attributes: dict[str, object]) -> bool:
    optional = [slot.name for slot in operator.signature.inputs if slot.optional]
    return (
        all(bool(given.tensors.get(slot)) is (slot in expression.names) for slot in optional)
        and all(given.tensors[slot][0].ndim in ranks for slot, ranks in expression.ranks.items())
        and all(attributes.get(name) == value for name, value in expression.when.items())
        and (expression.dense is None or given.tensors[expression.dense][0].stride(-1) == 1)
    )


def evaluated(expression: Expression, given: Arguments, attributes: dict[str, object], out: torch.Tensor | None = None) -> object:
    source = Source()
    values = {slot: tensors[0] for slot, tensors in given.tensors.items() if tensors} | attributes | {"out": out}
    return eval(
        expression.written({name: name for name in expression.names}, partial(source.bind_torch, "function")), source.bound | values
    )


LOWERED = [operator for operator in OPERATORS if variants_of(operator).expressions]


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in LOWERED])
def test_an_expression_says_what_becomes_of_everything_that_is_given(operator: Operator):
    variants = variants_of(operator)
    forms = {form: slots for slots, form in variants.in_place.items()} | {operator.kernel: (), variants.out: ("out",)}
    asked = {slot.name for slot in operator.signature.inputs if not slot.optional and not slot.shape_only}
    known = {slot.name for slot in operator.signature.inputs} | operator.attributes.keys()
    assert not any(slot.variadic for slot in (*operator.signature.inputs, *operator.signature.outputs))
    for form, found in variants_of(operator).expressions.items():
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
    named = [slot for slots in variants_of(operator).in_place for slot in slots] + list(operator.aliases)
    assert all(operator.signature.input(slot) for slot in named)
    assert all(len(slots) <= len(operator.signature.outputs) for slots in variants_of(operator).in_place)


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in OPERATORS if variants_of(operator).in_place])
def test_every_form_that_reuses_an_input_is_tried(operator: Operator):
    tried = set()
    for _, make in uses_of(operator):
        given = make()
        expected = compute(operator, given)
        tried |= {slots for slots in variants_of(operator).in_place if fits(operator, given, expected, slots)}
    assert tried == set(variants_of(operator).in_place)

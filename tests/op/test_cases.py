"""Every operator, at every case that it states: what it gives, its types, its file, and what it refuses."""

from collections.abc import Callable
from zlib import crc32

import pytest
import torch
from op.arguments import (
    DERIVED,
    DTYPES,
    FORWARD,
    AnyCase,
    Arguments,
    Built,
    append,
    arguments_of,
    build,
    cases_of,
    compute,
    declare,
    derive,
    has_floats,
    symbol,
)
from op.at_each_case import at_each_case
from op.edges import BROADCASTS, broadcast_slots, edges_of
from tolerances import CLAIMS, VALUES

import oarlock as ol
from oarlock.ir.size import evaluate, is_symbol, names_in
from oarlock.registry import Case, GradCheck, Operator, Rejects
from oarlock.tensor.dtype import to_torch
from oarlock.testing import check_operator

USES = [(operator, name, case) for operator in [*FORWARD, *DERIVED] for name, case in cases_of(operator, Case, GradCheck)]


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in FORWARD])
def test_every_operator_has_a_case(operator: Operator):
    assert cases_of(operator, Case), f"{operator.type} states no values: give it a Case"


@pytest.mark.parametrize(
    "operator",
    [pytest.param(each, id=each.type, marks=[pytest.mark.slow] if crc32(each.type.encode()) % 2 else []) for each in FORWARD],
)
def test_an_operator_of_ours_passes_what_users_hold_theirs_to(operator: Operator):
    """Its gradients and their gradients are what differences give, among the rest. Half of the operators are slow tests."""
    check_operator(operator)


@at_each_case(
    (operator, f"{name}-{DTYPES[dtype]}", case, dtype)
    for operator in FORWARD
    for name, case in cases_of(operator, Case)
    for dtype in (DTYPES if has_floats(operator, case) else [torch.float64])
)
def test_a_program_gives_the_values_that_a_case_states(operator: Operator, case: Case, dtype: torch.dtype):
    built = build(operator, arguments_of(operator, case, dtype))
    for slot in operator.signature.outputs:
        assert slot.name in case.values, f"the case does not state {slot.name}"
        stated = case.values[slot.name] if slot.variadic else [case.values[slot.name]]
        for actual, value in zip(built.run(built.op.outputs[slot.name], training=False), stated, strict=True):
            relative, absolute = VALUES.get(actual.dtype.to_real() if actual.is_complex() else actual.dtype, (0.0, 0.0))
            torch.testing.assert_close(actual, torch.tensor(value, dtype=actual.dtype), rtol=relative, atol=absolute, equal_nan=True)


# Types


def require_declared_types(built: Built):
    """Every output has the dtype and the shape that the program declares; a symbol stands for one size."""
    outputs = built.op.writes
    sizes = {symbol(size): size for tensor in built.feed.values() for size in tensor.shape}
    for var, actual in zip(outputs, built.run(outputs), strict=True):
        assert actual.dtype == to_torch(var.dtype), f"{var} is {actual.dtype}"
        assert var.shape is not None, f"{var}: not even the rank is declared"
        assert len(var.shape) == actual.ndim, f"{var} has the shape {list(actual.shape)}"
        for size, number in zip(var.shape, actual.shape, strict=True):
            if names_in(size) == {size}:
                sizes.setdefault(size, number)  # a size that only values tell
            assert evaluate(size, sizes) == number, f"{var} has the shape {list(actual.shape)}, where {sizes}"


@at_each_case(USES)
def test_outputs_have_the_types_that_the_program_declares(operator: Operator, case: AnyCase):
    require_declared_types(build(operator, arguments_of(operator, case)))


@at_each_case(USES)
def test_outputs_have_the_types_that_a_program_with_unknown_sizes_declares(operator: Operator, case: AnyCase):
    try:
        built = build(operator, arguments_of(operator, case), symbols=True)
    except ol.ShapeError:
        if operator.infer_function is None:
            raise
        pytest.skip("it needs to know these sizes")
    assert all(is_symbol(size) for var in built.op.writes for size in var.shape if isinstance(size, str))
    require_declared_types(built)


@at_each_case(
    (operator, name, edge) for operator in [*FORWARD, *DERIVED] for name, edge in edges_of(operator, cases_of(operator, Case, GradCheck))
)
def test_edge_inputs_give_the_types_that_the_program_declares(operator: Operator, edge: Callable[[], Arguments]):
    require_declared_types(build(operator, derive(operator, edge())))


@at_each_case(
    (operator, name, edge)
    for operator in FORWARD
    for name, edge in edges_of(operator, cases_of(operator, Case, GradCheck), only=BROADCASTS)
)
def test_inputs_that_broadcast_give_what_inputs_of_the_whole_shape_give(operator: Operator, edge: Callable[[], Arguments]):
    arguments = edge()
    slots = broadcast_slots(operator)
    shape = torch.broadcast_shapes(*(tensor.shape for slot in slots for tensor in arguments.tensors.get(slot, ())))
    whole = arguments.replaced(lambda slot, tensor: tensor.expand(shape).contiguous() if slot in slots else tensor)
    actual = compute(operator, arguments)
    for slot, expected in compute(operator, whole).items():
        torch.testing.assert_close(actual[slot], expected, rtol=CLAIMS[0], atol=CLAIMS[1])


# Files


@at_each_case(USES)
def test_a_program_that_was_written_and_read_is_the_same_bytes_and_runs_to_the_same_bits(operator: Operator, case: AnyCase):
    built = build(operator, arguments_of(operator, case))
    data = built.program.to_bytes()
    read = Built(ol.Program.from_bytes(data), {}, built.feed)
    assert read.program.to_bytes() == data
    for before, after in zip(built.run(built.op.writes), read.run(read.op.writes), strict=True):
        assert before.dtype == after.dtype
        assert torch.equal(before, after)


# Refusals


@at_each_case((operator, f"{name}: {case.message}", case) for operator in FORWARD for name, case in cases_of(operator, Rejects))
def test_arguments_that_do_not_fit_are_refused_in_the_stated_words(operator: Operator, case: Rejects):
    arguments = arguments_of(operator, case)
    built = declare(arguments)
    before = built.program.to_bytes()
    refusal = None
    try:
        append(operator, built, arguments.attributes)
    except ol.OarlockError as error:
        refusal = error
    if refusal is None:
        with pytest.raises(ol.OarlockError) as failure:
            built.run(built.op.writes)
        refusal = failure.value
    else:
        assert built.program.to_bytes() == before, "what is refused leaves the program as it was"
    assert case.message in str(refusal)

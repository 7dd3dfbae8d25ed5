"""Counters and conditions of loops are numbers of Python in a plan, wherever that gives what tensors would."""

import itertools
import math

import numpy
import pytest
import torch
from block_operators import run_branch

import oarlock as ol
from oarlock.backend.torch.variants import host_function, variants_of
from oarlock.errors import DeclarationError
from oarlock.ir.dtype import DType
from oarlock.registry.catalogue import standard
from oarlock.runtime.plan.numbers import wrapping
from oarlock.tensor.dtype import to_torch

WITH_FORMS = [operator for operator in standard.operators.values() if variants_of(operator).host is not None]


def edges(dtype: DType) -> list[bool | int | float]:
    """Numbers that a dtype holds, at its ends and in the middle."""
    if dtype is DType.BOOL:
        return [False, True]
    kind = to_torch(dtype)
    if dtype.is_floating:
        limits = torch.finfo(kind)
        exact = [limits.max, -limits.max, limits.smallest_normal, torch.tensor(0.1, dtype=kind).item()]
        return [*exact, 0.0, -0.0, 1.0, math.inf, -math.inf, math.nan]
    limits = torch.iinfo(kind)
    return sorted({limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 7, 100, max(limits.min, -3)})


def held_by(operator) -> list[DType]:
    """The dtypes that a form on numbers may be given: those of the inputs, where what comes out is a bool or an integer."""
    slot, result = operator.signature.inputs[0], operator.signature.outputs[0]
    real = [dtype for dtype in DType if not dtype.is_complex]  # of complex numbers, plans hold none
    kinds = {"bool": [DType.BOOL], "T": real}.get(slot.dtype, [dtype for dtype in real if dtype is not DType.BOOL])
    return kinds if result.dtype == "bool" else [dtype for dtype in kinds if dtype.is_integer]


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [pytest.param(operator, dtype, id=f"{operator.type}-{dtype}") for operator in WITH_FORMS for dtype in held_by(operator)],
)
def test_the_form_on_numbers_gives_the_number_that_the_kernel_gives(operator, dtype):
    for numbers in itertools.product(edges(dtype), repeat=len(operator.signature.inputs)):
        expected = operator.kernel(*(torch.tensor(number, dtype=to_torch(dtype)) for number in numbers)).item()
        actual = variants_of(operator).host(*numbers)
        if type(expected) is int:
            actual = wrapping(dtype)(actual)
        assert (type(actual), actual) == (type(expected), expected), numbers


def test_an_operator_with_attributes_has_no_host_function():
    with pytest.raises(DeclarationError, match="any has attributes, which are not passed to a host function"):
        host_function(standard.get("any"))(any)


# Plans


def run_all(program: ol.Program, feed: dict[str, object], fetch: list[ol.Var]) -> str:
    """Require that plans give the interpreter's bits, poisoned and after all passes too; return the text of the one without passes."""
    expected = ol.Executor(interpret=True).run(program, feed, fetch, scope=ol.init(program, ol.Scope()))
    for settings in ({"passes": ()}, {"passes": (), "poison": True}, {"poison": True}):
        actual = ol.Executor(**settings).run(program, feed, fetch, scope=ol.init(program, ol.Scope()))
        for one, other in zip(actual, expected, strict=True):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return ol.Executor(passes=()).plan(program, fetch).text


def body_of(text: str) -> list[str]:
    """The lines of the first `while` of a plan."""
    lines = text.splitlines()
    begun = next(number for number, line in enumerate(lines) if line.strip().startswith("while "))
    inside = itertools.takewhile(lambda line: line.startswith("        "), lines[begun + 1 :])
    return [line.strip() for line in inside]


def data(name: str = "x", dtype: str = "float32", shape: tuple[int, ...] = (2,)) -> ol.Var:
    return ol.layer.data(name, shape=shape, dtype=dtype, batch=None)


def zero(dtype: str = "int64") -> ol.Var:
    return ol.op.full(shape=(), value=0.0, dtype=dtype)


X = {"x": numpy.array([1.0, 3.0], "float32")}


def test_a_counter_is_a_number_in_its_loop_and_a_tensor_after_it():
    with ol.Program() as program:
        state, count = data(), zero()
        loop = ol.while_loop(count < 5)
        with loop.block():
            following = count + 1
            loop.carry(state, ol.op.tanh(state))
            loop.carry(count, following)
            loop.update_condition(following < 5)
        results = list(loop())
    assert run_all(program, X, results) == (
        "def plan(context_of, device, x_1):\n"
        "    less_0_3 = less_host_2(0, 5)\n"
        "    condition_6 = less_0_3\n"
        "    x_0_4, full_0_0_5 = x_1, 0\n"
        "    trip_7 = 0\n"
        "    while condition_6:\n"
        "        add_0_10 = int64_9(add_host_8(full_0_0_5, 1))\n"
        "        tanh_0_11 = tanh_12(x_0_4)\n"
        "        less_1_13 = less_host_2(add_0_10, 5)\n"
        "        condition_6 = less_1_13\n"
        "        x_0_4, full_0_0_5 = tanh_0_11, add_0_10\n"
        "        trip_7 += 1\n"
        "        del less_1_13, tanh_0_11, add_0_10\n"
        "    while_0_final_0_14, while_0_final_1_15 = x_0_4, one_number_16(full_0_0_5)\n"
        "    del condition_6, x_0_4, full_0_0_5\n"
        "    del less_0_3\n"
        "    return [while_0_final_0_14, while_0_final_1_15]\n"
    )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_a_counter_that_overflows_goes_on_as_a_tensor_would(dtype):
    with ol.Program() as program:
        count, trips = data("count", dtype, ()), zero()
        loop = ol.while_loop(count >= 1)
        with loop.block():
            following = count * 3 + 1
            loop.carry(count, following)
            loop.carry(trips, trips + 1)
            loop.update_condition((following >= 1) & (trips < 30))
        results = list(loop())
    for first in (1, 2, 100, numpy.iinfo(dtype).max - 3):
        text = run_all(program, {"count": numpy.array(first, dtype)}, results)
    assert any("multiply_host" in line for line in body_of(text))


def test_a_float_is_compared_with_what_its_dtype_makes_of_a_bound():
    """0.1 as float32 is above 0.1: beside a bound that were not rounded it would be greater."""
    with ol.Program() as program:
        state = data()
        loop = ol.while_loop(ol.op.mean(state) > 0.1)
        with loop.block():
            after = state * 0.5
            loop.carry(state, after)
            loop.update_condition(ol.op.mean(after) > 0.1)
        state = loop()
    for first in (0.1, 0.2, 0.8, math.nan, 3.0):
        text = run_all(program, {"x": numpy.full(2, first, "float32")}, [state])
    assert sum("greater_host" in line and ".item()" not in line for line in text.splitlines()) == 2


def test_counts_and_bounds_that_are_fed_are_asked_for_their_numbers():
    with ol.Program() as program:
        count, end = data("count", "int32", ()), data("end", "int32", ())
        stop = ol.op.less(end, count)
        loop = ol.while_loop(count < end)
        with loop.block():
            following = count + 2
            stopped = ~(stop | (following > 7))
            loop.carry(count, following)
            loop.carry(stop, stopped)
            loop.update_condition((following < end) & ol.op.not_equal(following, count + 5) & ~stopped)
        results = list(loop())
    for first, last in ((0, 5), (5, 0), (-3, 40), (6, 7), (8, 20)):
        text = run_all(program, {"count": numpy.array(first, "int32"), "end": numpy.array(last, "int32")}, results)
    assert sum(line.count(".item()") for line in body_of(text)) == 1
    assert "less_0" in text.partition("while")[0]


def test_two_tensors_are_compared_by_the_kernel():
    """At a GPU each number that is asked for is a wait, and the condition is one alone."""
    with ol.Program() as program:
        state, end = data(), data("end", shape=())
        loop = ol.while_loop(ol.op.mean(state) < end)
        with loop.block():
            after = state * 2.0
            loop.carry(state, after)
            loop.update_condition(ol.op.mean(after) < end)
        state = loop()
    text = run_all(program, {**X, "end": numpy.array(9.0, "float32")}, [state])
    assert ".item()" not in text
    assert "on_host" not in text


READERS = {
    "a kernel": lambda loop, state, count: ol.op.multiply(state, ol.op.cast(count, dtype="float32")),
    "a stack": lambda loop, state, count: loop.output(count) or state * 2.0,
    "its shape": lambda loop, state, count: state + ol.op.full_like(count, value=1.0),
    "a branch": lambda loop, state, count: ol.op.reduce_sum(
        run_branch("odd", ol.op.less(ol.op.mean(state), ol.op.mean(state) + 1.0), lambda: state * ol.op.cast(count, dtype="float32")),
        axis=0,
    ),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_counter_that_is_read_as_a_tensor_stays_one(read):
    with ol.Program() as program:
        state, count = data(), zero()
        loop = ol.while_loop(count < 4)
        with loop.block():
            loop.carry(state, read(loop, state, count))
            loop.carry(count, count + 1)
            loop.update_condition(count + 1 < 4)
        results = list(loop())
    text = run_all(program, X, results)
    assert any(line.split(" = ")[-1].startswith("add_") and "on_host" not in line for line in body_of(text))


def test_a_constant_is_a_number_for_some_and_a_tensor_for_others():
    with ol.Program() as program:
        state, count, one = data(dtype="int64"), zero(), ol.op.full(shape=(), value=1.0, dtype="int64")
        loop = ol.while_loop(count < 4)
        with loop.block():
            following = ol.op.add(count, one)
            loop.carry(state, ol.op.add(state, one))
            loop.carry(count, following)
            loop.update_condition(following < 4)
        state, _ = loop()
    text = run_all(program, {"x": numpy.array([1, 5])}, [state, one])
    assert text.count("= full_") == 1
    assert any("add_host" in line and ", 1)" in line for line in body_of(text))


@pytest.fixture(params=[False, True], ids=["kept", "flushed"])
def denormals(request):
    """Denormal numbers are as they are, or zero, in this thread."""
    before = float("1e-310") == 0.0
    torch.set_flush_denormal(request.param)
    yield
    torch.set_flush_denormal(before)


@pytest.mark.usefixtures("denormals")
@pytest.mark.parametrize(("value", "dtype"), [(1e-40, "float32"), (1e-310, "float64"), (1e-7, "float16")])
def test_a_constant_that_might_be_flushed_to_zero_stays_a_tensor(value, dtype):
    with ol.Program() as program:
        state = data(dtype=dtype, shape=())
        loop = ol.while_loop(state > value)
        with loop.block():
            after = state * 0.25
            loop.carry(state, after)
            loop.update_condition(after > value)
        state = loop()
    assert "on_host" not in run_all(program, {"x": numpy.array(0.5, dtype)}, [state])


def test_loops_and_branches_in_loops_take_numbers_and_hand_them_on():
    with ol.Program() as program:
        state, count, total = data(), zero(), zero()
        outer = ol.while_loop(count < 3)
        with outer.block():
            value, reached = ol.op.assign(state), zero()
            inner = ol.while_loop(reached < count)
            with inner.block():
                inner.carry(value, value + ol.op.reduce_sum(run_branch("late", reached >= 1, lambda: state * 2.0), axis=0))
                inner.carry(reached, reached + 1)
                inner.update_condition(reached + 1 < count)
            value, reached = inner()
            outer.carry(state, value)
            outer.carry(total, total + reached)
            outer.carry(count, count + 1)
            outer.update_condition((count + 1 < 3) & (total < 100))
        results = list(outer())
    text = run_all(program, X, results)
    assert ".item()" not in text
    assert text.count("one_number") == 2  # for what is fetched, after the outer loop


def test_values_of_a_loop_that_fails_are_told_as_the_interpreter_tells_them():
    with ol.Program() as program:
        state, count = data(), zero()
        loop = ol.while_loop(count < 9, max_trips=4)
        with loop.block():
            loop.carry(state, state * 2.0)
            loop.carry(count, count + 1)
            loop.update_condition(count + 1 < 9)
        results = list(loop())
    messages = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
        with pytest.raises(ol.KernelError) as caught:
            executor.run(program, X, results, scope=ol.Scope())
        messages.append(str(caught.value))
    given = [message.partition("condition =")[2] for message in messages]
    assert given[0] == given[1] != ""
    assert "the condition is still true after max_trips=4 iterations" in messages[0]


# Numbers that are read off tensors


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (7, 11), (2, 0), (64, 129)])
def test_the_number_of_a_mean_is_that_of_the_tensor(dtype, shape):
    random = torch.Generator().manual_seed(0)
    for scale in (1.0, 1e-38, 1e-7, 3e4):
        x = (torch.randn(shape, generator=random, dtype=torch.float64) * scale).to(dtype)
        for given in (x, x.t() if x.dim() == 2 else x, -x):
            number, wanted = variants_of(ol.op.mean).number(given, keepdim=False), ol.op.mean.kernel(given, keepdim=False)
            assert type(number) is float
            assert torch.full((), number, dtype=dtype).equal(wanted) or (math.isnan(number) and bool(wanted.isnan()))


@pytest.mark.parametrize("kept", ["", "stacked", "computed with", "fetched"])
def test_a_mean_that_the_host_alone_asks_for_is_a_number(kept):
    with ol.Program() as program:
        state = data()
        first = ol.op.mean(state)
        loop = ol.while_loop(first >= 0.1)
        with loop.block():
            after = state * 0.5
            average = ol.op.mean(after)
            loop.carry(state, after)
            loop.update_condition(average >= 0.1)
            if kept in ("stacked", "computed with"):
                loop.output(average if kept == "stacked" else after + average)
        results = loop()
        fetched = [*results] if isinstance(results, list | tuple) else [results]
        if kept == "fetched":
            fetched.append(first)
    for start in (0.2, 0.8, math.nan, 3.0):
        text = run_all(program, {"x": numpy.array([start, start / 3], "float32")}, fetched)
    before, inside = text.partition("while")[0], "\n".join(body_of(text))
    assert ("mean_number" in before) is (kept != "fetched")
    assert ("mean_number" in inside) is (kept in ("", "fetched"))
    assert (".item()" in before, ".item()" in inside) == (kept == "fetched", kept in ("stacked", "computed with"))


def test_a_mean_of_one_axis_is_a_number_only_where_there_is_no_other():
    with ol.Program() as program:
        state = data()
        loop = ol.while_loop(ol.op.mean(state, axis=0) > 0.1)
        with loop.block():
            after = state * 0.5
            loop.carry(state, after)
            loop.update_condition(ol.op.mean(after, axis=0) > 0.1)
        state = loop()
    assert "mean_number" in run_all(program, X, [state])

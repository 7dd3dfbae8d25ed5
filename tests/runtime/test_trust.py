"""Kernels that are not trusted: they may hold their inputs and outputs. Only such values are treated with care."""

import re

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.private import with_autograd

HELD: list[tuple[torch.Tensor, torch.Tensor]] = []
"""The tensors that kernels hold, each with its value at the time."""


def hold(tensor: torch.Tensor) -> torch.Tensor:
    HELD.append((tensor, tensor.clone()))
    return tensor


def keeps(x):
    hold(x)
    return torch.exp(x)


def keeps_its_result(x):
    return hold(torch.exp(x))


def gives_its_input(x):
    return x


def gives_a_view_of_its_own(x):
    return hold(torch.exp(x).repeat(2, *[1] * (x.dim() - 1)))[: len(x)]


def gives_what_it_held(x):
    hold(x)
    found = [tensor for tensor, _ in HELD if tensor.shape == x.shape and tensor.data_ptr() == x.data_ptr()]
    return found[0]


KERNELS = [keeps, keeps_its_result, gives_its_input, gives_a_view_of_its_own, gives_what_it_held]


def operator_of(kernel, *, trusted=False):
    """The operator `middle` of a catalogue of its own, which has all of ours too."""
    catalogue = ol.registry.Catalogue()
    catalogue.operators.update(ol.registry.standard.operators)
    catalogue.gradient_operators.update(ol.registry.standard.gradient_operators)
    catalogue.fused_operators.update(ol.registry.standard.fused_operators)

    def middle(x):
        return kernel(x)

    return ol.operator("x: float[*b] -> y: float[*b]", trusted=trusted, catalogue=catalogue)(middle), catalogue


# Programs around the operator. They take `x`, of 4 rows and 3 columns.


def in_a_line(middle, x):
    h = ol.op.neg(x)
    y = ol.op.tanh(middle(h))
    return [ol.op.multiply(ol.op.tanh(h), y)]


def of_a_view(middle, x):
    h = ol.op.neg(x)
    whole = ol.op.reshape(h, shape=(12,))
    y = ol.op.sigmoid(middle(whole))
    return [ol.op.add(ol.op.tanh(h), ol.op.reshape(y, shape=(4, 3)))]


def of_a_part(middle, x):
    first, second = ol.op.split(ol.op.neg(x), axis=0, sections=2)
    y = middle(first)
    return [ol.op.multiply(ol.op.tanh(first), ol.op.tanh(second)), ol.op.exp(y)]


def of_a_constant(middle, x):
    c = ol.op.full(shape=(4, 3), value=2.0, dtype="float64")
    return [ol.op.add(x, ol.op.tanh(middle(c))), ol.op.multiply(x, c)]


def in_a_loop(middle, x, *, of, then=lambda y: y):
    """A memory that is written over, steps that are, and a sum over the trips; `middle` reads one of them."""
    seen = []

    def read(name, value):
        if name == of:
            seen.append(then(middle(value)))
        return value

    xs, start = ol.op.neg(x), ol.op.exp(ol.op.full(shape=(3,), value=0.5, dtype="float64"))
    rnn = ol.rnn()
    with rnn.step():
        step = read("step", rnn.step_input(xs))
        memory = rnn.memory(init=start)
        before = read("memory", rnn.previous_memory(memory))
        gate = read("over the step", ol.op.sigmoid(step))
        after = read("next", ol.op.add(ol.op.tanh(ol.op.multiply(before, gate)), gate))
        rnn.update_memory(memory, after)
        rnn.output(after)
        rnn.output(ol.op.multiply(after, seen[0]))
    stacks = rnn()
    return [ol.op.tanh(ol.op.neg(stacks[0])), ol.op.exp(stacks[1]), rnn.final_memory(memory)]


def of_a_memory(middle, x, *, of):
    """A memory that the trips write over, and its first value."""
    start = ol.op.exp(ol.op.reshape(ol.op.slice(x, axis=0, start=0, stop=1), shape=(3,)))
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(x)
        memory = rnn.memory(init=start)
        before = rnn.previous_memory(memory)
        seen = middle(before) if of == "before" else None
        kept = ol.op.multiply(before, step)
        seen = middle(kept) if of == "kept" else seen
        after = ol.op.tanh(kept)
        seen = middle(after) if of == "after" else seen
        rnn.update_memory(memory, after)
        rnn.output(ol.op.reduce_sum(ol.op.exp(seen)))
    return [rnn(), rnn.final_memory(memory)]


def of_what_is_returned(middle, x):
    """Small steps of a stack that is returned: they lie in a buffer that is held, and are copied."""
    rnn = ol.rnn()
    with rnn.step():
        y = ol.op.tanh(rnn.step_input(x))
        rnn.output(y)
        rnn.output(ol.op.exp(middle(y)))
    return list(rnn())


def after_a_loop(middle, x):
    xs = ol.op.neg(x)
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.tanh(rnn.step_input(xs)))
    stack = rnn()
    y = middle(stack)
    again = ol.rnn()
    with again.step():
        again.output(ol.op.tanh(again.step_input(stack)))
    return [ol.op.tanh(y), again()]


PROGRAMS = {
    "line": in_a_line,
    "view": of_a_view,
    "part": of_a_part,
    "constant": of_a_constant,
    **{f"loop, {of}": lambda middle, x, of=of: in_a_loop(middle, x, of=of) for of in ("step", "memory", "over the step", "next")},
    "loop, over the result": lambda middle, x: in_a_loop(middle, x, of="memory", then=ol.op.tanh),
    **{f"memory, {of}": lambda middle, x, of=of: of_a_memory(middle, x, of=of) for of in ("before", "kept", "after")},
    "returned": of_what_is_returned,
    "stack": after_a_loop,
}


@pytest.fixture
def held():
    HELD.clear()
    yield HELD
    HELD.clear()


def written(make, middle):
    with ol.Program() as program:
        return program, make(middle, ol.layer.data("x", shape=[4, 3], dtype="float64", batch=None))


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("poison", [False, True])
def test_what_a_kernel_may_hold_is_never_written_over(kernel, make, poison, held):
    middle, catalogue = operator_of(kernel)
    program, fetch = written(make, middle)
    plan = ol.Executor(catalogue=catalogue, passes=(), poison=poison).prepare(program, fetch, scope=ol.Scope())
    interpreted = ol.Executor(catalogue=catalogue, interpret=True).prepare(program, fetch, scope=ol.Scope())
    for number in range(3):
        feed = {"x": numpy.linspace(-1, 1 + number, 12).reshape(4, 3)}
        for found, expected in zip(plan(feed), interpreted(feed), strict=True):
            numpy.testing.assert_array_equal(found, expected)
        for tensor, before in held:
            assert torch.equal(tensor, before), "it was written over"


def test_a_trusted_kernel_that_breaks_its_word_is_seen(held):
    """The test above sees what is written over: where nobody takes care, it is."""
    broken = set()
    for name, make in PROGRAMS.items():
        held.clear()
        middle, catalogue = operator_of(keeps, trusted=True)
        program, fetch = written(make, middle)
        run = ol.Executor(catalogue=catalogue, passes=()).prepare(program, fetch, scope=ol.Scope())
        for number in range(3):
            run({"x": numpy.linspace(-1, 1 + number, 12).reshape(4, 3)})
        broken |= {name} if not all(torch.equal(tensor, before) for tensor, before in held) else set()
    assert broken == set(PROGRAMS) - {"constant", "loop, memory", "loop, next", "loop, over the result"}, "which no plan writes over anyway"


# What is left of the plan


def around(middle, x):
    """Liberties of plans with our operators: precompute, write over values, hold constants and buffers; `middle` has no part in it."""
    w = ol.layer.create_parameter([3, 3], name="w", dtype="float64")
    h = ol.op.linear(x, ol.op.exp(ol.op.tanh(w)))
    left, right = ol.op.tanh(ol.op.neg(h)), ol.op.exp(ol.op.neg(h))
    c = ol.op.full(shape=(3,), value=0.25, dtype="float64")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(left)
        memory = rnn.memory(init=c)
        rnn.update_memory(memory, ol.op.tanh(ol.op.add(ol.op.multiply(rnn.previous_memory(memory), step), c)))
        rnn.output(rnn.previous_memory(memory))
    total = ol.op.reduce_sum(ol.op.multiply(rnn(), right))
    return [ol.op.sigmoid(ol.op.neg(total)), middle(ol.op.square(x))]


def texts_of(make, kernel=torch.exp):
    """The texts of the plan with a trusted and with another operator."""
    found = []
    for trusted in (True, False):
        middle, catalogue = operator_of(kernel, trusted=trusted)
        program, fetch = written(make, middle)
        plan = ol.Executor(catalogue=catalogue, passes=()).plan(program, fetch)
        found.append((plan.text, plan.constants.keys()))
    return found


def test_one_operator_that_is_not_trusted_leaves_the_plan_as_it_is():
    trusted, other = texts_of(around)
    assert other == trusted
    text, constants = trusted
    for part in ("precompute", "workspace.take", "give_back", "tanh_in_place"):
        assert part in text
    assert len(constants) == 1


@pytest.mark.parametrize("make", [in_a_line, of_a_constant])
def test_only_lines_of_values_that_it_reads_or_makes_differ(make):
    (trusted, _), (other, _) = texts_of(make)
    assert trusted != other
    (line,) = [line for line in other.splitlines() if "= middle_" in line]
    seen = {word.rpartition("_")[0] for word in re.findall(r"\w+_\d+", line)}
    texts = [[re.sub(r"_\d+\b", "", each) for each in text.splitlines()] for text in (trusted, other)]
    kept, left = ([each for each in lines if seen.isdisjoint(re.findall(r"\w+", each))] for lines in texts)
    assert kept == left


# Gradients


def by_autograd(x):
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad((leaf**3).sum(), leaf)[0]


def test_a_kernel_may_ask_pytorch_for_gradients_beside_kernels_that_do_not():
    middle, catalogue = operator_of(by_autograd)
    program, fetch = written(lambda middle, x: [ol.op.tanh(middle(ol.op.neg(x)))], middle)
    x = numpy.linspace(-1, 1, 12).reshape(4, 3)
    (found,) = ol.Executor(catalogue=catalogue).prepare(program, fetch, scope=ol.Scope(), return_numpy=False)({"x": x})
    numpy.testing.assert_allclose(found.numpy(), numpy.tanh(3 * x * x))
    assert not found.requires_grad


def test_nothing_is_recorded_where_a_kernel_does_not_ask():
    recorded = []

    def looks(x):
        recorded.append((torch.is_grad_enabled(), (x * torch.ones(3, dtype=torch.float64, requires_grad=True)).requires_grad))
        return x.clone()

    middle, catalogue = operator_of(looks)
    program, fetch = written(in_a_line, middle)
    ol.Executor(catalogue=catalogue, passes=()).prepare(program, fetch, scope=ol.Scope())({"x": numpy.ones((4, 3))})
    assert recorded == [(False, False)]


def test_the_layers_are_left_out_again_where_a_kernel_fails():
    from oarlock.backend.torch.private import below_some_autograd

    def fails(x):
        raise ValueError("no")

    x = torch.ones(3, requires_grad=True)
    with below_some_autograd():
        with pytest.raises(ValueError, match="^no$"):
            with_autograd(fails)(x)
        with torch.enable_grad():
            assert not (x * 2).requires_grad
    assert (x * 2).requires_grad

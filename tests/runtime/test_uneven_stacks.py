"""Values whose size differs from trip to trip: no op writes over one, since it is no single tensor. And shapes that variables tell."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import in_place_variant
from oarlock.ir.traversal import free_vars
from oarlock.op.control.recurrent_loop import recurrent
from oarlock.registry import Catalogue, operator, standard

FEED = {"x": numpy.array([[1.0, -2.0, 3.0], [-1.0, -1.0, 2.0], [0.5, 0.25, 4.0]])}
EVEN = {"x": numpy.array([[1.0, -2.0, 3.0], [2.0, -1.0, 2.0], [-0.5, 0.25, 4.0]])}


def _stack_of_positive_numbers(program: ol.Program) -> ol.Var:
    """Of each row, the numbers that are positive: as many as values say."""
    x = ol.layer.data("x", [3], batch="t", dtype="float64")
    block = program.new_block("loop.body", program.main)
    with block:
        step = block.new_var("loop.step", x.dtype, (3,))
        positive = ol.op.gather(step, ol.op.nonzero(ol.op.greater(step, ol.op.full(shape=(), value=0.0, dtype="float64"))))
        block.inputs, block.outputs = [step], [positive]
    return recurrent([x], [], free_vars(block), None, body=block)[0][0]


def _sums(program: ol.Program, stack: ol.Var) -> ol.Var:
    """The sum of each row of the stack."""
    block = program.new_block("sums.body", program.main)
    with block:
        step = block.new_var("sums.step", stack.dtype, stack.shape[1:])
        block.inputs, block.outputs = [step], [ol.op.reduce_sum(step)]
    return recurrent([stack], [], free_vars(block), None, body=block)[0][0]


@pytest.fixture
def catalogue() -> Catalogue:
    """With `added_to_itself`, which has a form that writes over a tensor."""
    catalogue = Catalogue()
    for known in standard:
        catalogue.add(known)

    @operator("x: float[...s] -> y: float[...s]", catalogue=catalogue)
    def added_to_itself(x):
        return 2 * x

    @in_place_variant(added_to_itself, "x")
    def added_to_itself_in_place(x):
        return x.mul_(2)

    return catalogue


@pytest.mark.parametrize("passes", [None, ()], ids=["passes", "plain"])
def test_a_form_that_writes_over_its_input_is_not_called_where_that_may_be_an_uneven_stack(catalogue, passes):
    with ol.Program() as program:
        stack = _stack_of_positive_numbers(program)
        program.targets["y"] = _sums(program, catalogue.get("added_to_itself")(stack))
    planned = ol.Executor(catalogue=catalogue) if passes is None else ol.Executor(catalogue=catalogue, passes=passes)
    (expected,) = ol.Executor(catalogue=catalogue, interpret=True).run(program, EVEN, ["y"], scope=ol.Scope())
    assert expected.tolist() == [2 * row[row > 0].sum() for row in EVEN["x"]]
    (y,) = planned.run(program, EVEN, ["y"], scope=ol.Scope())
    assert y.tolist() == expected.tolist()
    assert "added_to_itself_in_place" not in planned.plan(program, ["y"]).text


def test_an_op_that_takes_no_uneven_stack_says_so_in_the_same_words_by_a_plan():
    with ol.Program() as program:
        program.targets["y"] = _sums(program, ol.op.relu(_stack_of_positive_numbers(program)))
    said = set()
    for executor in (ol.Executor(interpret=True), ol.Executor(), ol.Executor(passes=())):
        with pytest.raises(ol.KernelError) as raised:
            executor.run(program, FEED, ["y"], scope=ol.Scope())
        said.add(raised.value.message)
    assert len(said) == 1


# Liveness


@pytest.mark.parametrize("passes", [None, ()], ids=["passes", "plain"])
@pytest.mark.parametrize("told", ["fed", "computed"])
def test_a_variable_that_an_attribute_stands_for_lives_until_it_is_read(passes, told):
    """Nothing but the attribute of an op further down reads it."""
    with ol.Program() as program:
        x = ol.layer.data("x", [3], batch="t", dtype="float64")
        shape = ol.layer.data("shape", [2], batch=None, dtype="int64")
        shape = shape if told == "fed" else ol.op.multiply(shape, ol.op.full(shape=(), value=1, dtype="int64"))
        program.targets["y"] = ol.op.reshape(ol.op.tanh(x), shape=shape)
    executor = ol.Executor() if passes is None else ol.Executor(passes=passes)
    feed = {**FEED, "shape": numpy.array([1, 9])}
    (y,) = executor.run(program, feed, ["y"], scope=ol.Scope())
    assert y.tolist() == [torch.tanh(torch.tensor(FEED["x"])).reshape(-1).tolist()]


def test_what_an_attribute_reads_later_is_not_written_over():
    """By an op between, for which it would else be memory to write over."""
    with ol.Program() as program:
        x = ol.layer.data("x", [2], batch="t", dtype="int64")
        first = ol.op.slice(ol.op.reshape(x, shape=(-1,)), axis=0, start=0, stop=2, clip=False)
        shape = ol.op.add(first, ol.op.full(shape=(), value=1, dtype="int64"))
        other = ol.op.multiply(shape, ol.op.full(shape=(), value=100, dtype="int64"))
        program.targets["y"] = ol.op.reshape(x, shape=shape)
        program.targets["other"] = other
    feed = {"x": numpy.array([[0, 5], [7, 8], [9, 10]])}
    for executor in (ol.Executor(passes=()), ol.Executor(), ol.Executor(interpret=True)):
        y, other = executor.run(program, feed, ["y", "other"], scope=ol.Scope())
        assert y.shape == (1, 6)
        assert other.tolist() == [100, 600]

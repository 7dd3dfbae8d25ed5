"""The expression that a plan writes instead of the call of a kernel."""

import re

import numpy
import pytest
import torch
from rounding import require_as_interpreted

import oarlock as ol
from oarlock import op
from oarlock.op.fused import addcmul, addmm


def plan_of(program):
    return ol.Executor().plan(program, fetch=["y"]).text


def require_same(program, feed):
    actual, expected = (
        ol.Executor(interpret=interpret).run(program, feed=feed, fetch=["y"], scope=ol.init(program, ol.Scope()))[0]
        for interpret in (False, True)
    )
    name = program.targets["y"].name
    require_as_interpreted(program, {name: actual}, {name: expected})


@pytest.mark.parametrize(
    ("shape", "bias", "written"),
    [
        ([3], False, r"y_\d+ = linear_\d+\(x_\d+, w_\d+\)"),
        ([3], True, r"y_\d+ = linear_\d+\(b_\d+, x_\d+, w_\d+\)"),
        ([2, 3], False, r"y_\d+ = linear_\d+\(x_\d+, w_\d+\)"),
        ([2, 3], True, r"y_\d+ = linear_\d+\(x_\d+, w_\d+, b_\d+\)"),
    ],
    ids=["matrices", "with an optional input", "stacks of matrices", "stacks, with an optional input"],
)
def test_an_expression_stands_where_it_holds(shape, bias, written):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape, dtype="float64", batch="n")
        w = ol.layer.create_parameter([3, 4], dtype="float64", name="w")
        b = (ol.layer.create_parameter([4], dtype="float64", name="b"),) if bias else ()
        program.targets["y"] = op.linear(x, w, *b, name="y")
    assert len(re.findall(f"    {written}\n", plan_of(program))) == 1
    require_same(program, {"x": numpy.ones((5, *shape))})


@pytest.mark.parametrize("subtracted", [False, True])
def test_the_expression_is_that_for_the_attributes(subtracted):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [3], dtype="float64", batch="n")
        program.targets["y"] = addcmul(x, x, x, subtracted=subtracted)
    assert ("value=-1" in plan_of(program)) is subtracted
    require_same(program, {"x": numpy.ones((5, 3))})


def test_a_step_in_a_buffer_is_written_over_directly():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch="n")
        w, u = (ol.layer.create_parameter([size, 4], dtype="float64") for size in (3, 4))
        products = op.linear(x, w)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = addmm(rnn.step_input(products), rnn.previous_memory(state), u)
            rnn.update_memory(state, op.tanh(after))
            rnn.output(op.sigmoid(after))
        program.targets["y"] = op.sqrt(rnn())
    assert len(re.findall(r"\.addmm_\(\w+, \w+\)\n", plan_of(program))) == 1
    random = numpy.random.default_rng(0)
    require_same(program, {"x": random.normal(size=(5, 2, 3)), "start": random.normal(size=(2, 4))})


def test_what_may_lie_in_any_order_is_not():
    """Written over as columns, it would be another product, which rounds otherwise."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [8], dtype="float32", batch="n")
        w = ol.layer.create_parameter([8, 8])
        program.targets["y"] = addmm(op.tanh(x), x, w)
    assert "addmm_in_place" in plan_of(program)
    x = torch.randn(8, 12, generator=torch.Generator().manual_seed(0)).t()
    require_same(program, {"x": x})

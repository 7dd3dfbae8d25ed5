"""What a plan calls instead of a kernel that does nothing but call it."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock import op
from oarlock.op.fused import linear_onto
from oarlock.registry.declaration import DirectCall


@pytest.fixture
def counted(monkeypatch):
    """A function that counts the direct calls of a form of an operator from now on."""

    def count(operator, form):
        calls = []
        direct = operator.direct_calls[form]

        def called(*values, **out):
            calls.append(len(values))
            return direct.function(*values, **out)

        monkeypatch.setitem(operator.direct_calls, form, DirectCall(called, direct.rank, direct.dense))
        return calls

    return count


def same_as_interpreted(program, feed):
    actual, expected = (
        ol.Executor(interpret=interpret).run(program, feed=feed, fetch=["y"], scope=ol.init(program, ol.Scope()))[0]
        for interpret in (False, True)
    )
    return numpy.array_equal(numpy.asarray(actual), numpy.asarray(expected))


@pytest.mark.parametrize(
    ("shape", "bias", "direct"),
    [([3], False, 1), ([2, 3], False, 0), ([3], True, 0)],
    ids=["matrices", "stacks of matrices", "an optional input"],
)
def test_the_product_of_two_matrices_is_called_directly(counted, shape, bias, direct):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape, dtype="float64", batch="n")
        w = ol.layer.create_parameter([3, 4], dtype="float64")
        b = (ol.layer.create_parameter([4], dtype="float64"),) if bias else ()
        program.targets["y"] = op.linear(x, w, *b)
    calls = counted(op.linear, op.linear.kernel)
    assert same_as_interpreted(program, {"x": numpy.ones((5, *shape))})
    assert len(calls) == direct


def test_a_step_in_a_space_is_written_over_directly(counted):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch="n")
        w, u = (ol.layer.create_parameter([size, 4], dtype="float64") for size in (3, 4))
        products = op.linear(x, w)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = linear_onto(rnn.step_input(products), rnn.previous_memory(state), u)
            rnn.update_memory(state, op.tanh(after))
            rnn.output(op.sigmoid(after))
        program.targets["y"] = op.sqrt(rnn())
    calls = counted(linear_onto, linear_onto.in_place_kernels[("base",)])
    random = numpy.random.default_rng(0)
    assert same_as_interpreted(program, {"x": random.normal(size=(5, 2, 3)), "start": random.normal(size=(2, 4))})
    assert len(calls) == 5


def test_what_may_lie_in_any_order_is_not(counted):
    """Written over as columns, it would be another product, which rounds otherwise."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [8], dtype="float32", batch="n")
        w = ol.layer.create_parameter([8, 8])
        program.targets["y"] = linear_onto(op.tanh(x), x, w)
    calls = counted(linear_onto, linear_onto.in_place_kernels[("base",)])
    x = torch.randn(8, 12, generator=torch.Generator().manual_seed(0)).t()
    assert same_as_interpreted(program, {"x": x})
    assert not calls

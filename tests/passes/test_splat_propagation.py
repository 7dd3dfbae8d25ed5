"""A tensor of one number repeated is that number, and numbers are multiplied first."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.passes.pipeline import PASSES

FEED = {"x": numpy.linspace(-1.0, 1.0, 6).reshape(2, 3), "y": numpy.linspace(2.0, 3.0, 6).reshape(2, 3)}


def data(name: str = "x", **options: object) -> ol.Var:
    return ol.layer.data(name, shape=[3], dtype="float64", **options)


def computations(lines: list[str]) -> list[str]:
    return [line.partition(" = ")[2] for line in lines if " = " in line]


def test_the_gradient_of_a_mean_of_squares_is_one_product():
    with ol.Program() as program:
        x = data()
        (gradient,) = ol.gradients([ol.layer.mean(ol.op.square(x))], [x])
    lines, applied = rewritten(program, [gradient], "canonicalize", "constant_folding", "cse", "splat_propagation")
    assert applied["splat_propagation"] == 2
    assert lines == [
        "mean_0@SCALAR_1: float64[] = numel(like=x, dtype=float64)",
        "full_0: float64[] = full(dtype=float64, shape=shape[], value=2.0)",
        "mean_0@SCALAR_4: float64[] = divide(x=full_0, y=mean_0@SCALAR_1)",
        "x@GRAD: float64[n, 3] = multiply(x=x, y=mean_0@SCALAR_4)",
    ]
    require_same_values(
        program, {"x": FEED["x"]}, [gradient], "canonicalize", "constant_folding", "cse", "splat_propagation", tolerance=1e-14
    )


def test_the_count_of_known_sizes_is_a_constant():
    with ol.Program() as program:
        x = data(batch=None)
        (gradient,) = ol.gradients([ol.layer.mean(ol.op.square(x))], [x])
    lines, _ = rewritten(program, [gradient], "canonicalize", "constant_folding", "splat_propagation")
    assert [line.partition("(")[0] for line in computations(lines)] == ["full", "multiply"]
    require_same_values(program, {"x": FEED["x"][0]}, [gradient], "canonicalize", "constant_folding", "splat_propagation", tolerance=1e-14)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("axis", "count"), [(0, 2), (1, 3), (-1, 3)])
def test_a_mean_along_an_axis_hands_to_each_element_one_by_the_size_of_that(axis, count, keep):
    """A mean of everything has one number to count by; this one has fewer elements in each."""
    with ol.Program() as program:
        x = data()
        (gradient,) = ol.gradients([ol.op.reduce_sum(ol.op.mean(x, axis=axis, keepdim=keep))], [x])
        twice = ol.op.multiply(gradient, x)
    for passes in (("splat_propagation",), tuple(PASSES)):
        given, product = ol.Executor(passes=passes).run(program, {"x": FEED["x"]}, [gradient, twice], scope=ol.Scope())
        numpy.testing.assert_allclose(given, numpy.full((2, 3), 1 / count), rtol=1e-14)
        numpy.testing.assert_allclose(product, FEED["x"] / count, rtol=1e-14)


@pytest.mark.parametrize(
    ("write", "count"),
    [
        (lambda x, like: x * ol.op.full_like(like, value=3.0, dtype="float64"), 1),
        (lambda x, like: ol.op.full_batch_size_like(like, shape=(3,), value=3.0, dtype="float64") - x, 1),
        (lambda x, like: x / ol.op.exp(ol.op.full_like(like, value=3.0, dtype="float64")), 1),
        (lambda x, like: x + ol.op.broadcast_to_like(ol.op.reduce_sum(like), like), 1),
        (lambda x, like: (x * 2.0) * 3.0, 1),
        (lambda x, like: (x * 2.0) / 3.0, 1),
        (lambda x, like: -(x * 2.0), 1),
        (lambda x, like: ((2.0 * x) * 3.0) * ol.op.reduce_sum(like), 2),
        (lambda x, like: ol.op.clip(x, lower=ol.op.full_like(like, value=0.0, dtype="float64")), 1),
    ],
)
def test_numbers_are_read_as_numbers_and_multiplied_first(write, count):
    with ol.Program() as program:
        y = ol.op.tanh(write(data(), data("y")))
    _, applied = rewritten(program, [y], "splat_propagation")
    assert applied == {"splat_propagation": count}
    require_same_values(program, FEED, [y], "splat_propagation", tolerance=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: ol.op.full_like(y, value=3.0, dtype="float64") * ol.op.reduce_sum(x),  # which would lose its shape
        lambda x, y: ol.op.slice(x, axis=0, stop=1) * ol.op.full_like(y, value=3.0, dtype="float64"),
        lambda x, y: ol.op.sum([x, ol.op.full_like(y, value=3.0, dtype="float64")]),  # which does not broadcast
        lambda x, y: (x * 2.0) * y,
        lambda x, y: (x / 2.0) * 3.0,
    ],
)
def test_what_gives_the_shape_stays(write):
    with ol.Program() as program:
        z = ol.op.tanh(write(data(), data("y")))
    assert rewritten(program, [z], "splat_propagation")[1] == {"splat_propagation": 0}
    require_same_values(program, FEED, [z], "splat_propagation")


def test_a_product_that_is_read_twice_is_computed_once():
    with ol.Program() as program:
        half = data() * 0.5
        y = ol.op.tanh(half) + half * 3.0
    assert rewritten(program, [y], "splat_propagation")[1] == {"splat_propagation": 0}


def test_a_number_is_computed_where_the_tensor_was_and_read_inside_a_loop():
    with ol.Program() as program:
        x = data(batch="t")
        w = data("w", batch=None)
        threes = ol.op.full_like(w, value=3.0, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(x) * threes))
        y = rnn()
    lines, applied = rewritten(program, [y], "splat_propagation")
    assert applied == {"splat_propagation": 1}
    assert not any("full_like(" in line for line in lines)
    require_same_values(program, {"x": FEED["x"], "w": numpy.ones(3)}, [y], "splat_propagation")


def test_what_no_small_float_counts_stays():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float16")
        (gradient,) = ol.gradients([ol.layer.mean(x)], [x])
        y = gradient * x
    assert rewritten(program, [y], "constant_folding", "splat_propagation")[1]["splat_propagation"] == 0


def test_a_number_that_is_made_in_a_block_belongs_to_that_block():
    with ol.Program() as program:
        two = ol.op.full(shape=(), value=2.0, dtype="float64")
        x, rnn = data(batch="t"), ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(-(rnn.step_input(x) * two)))
        y = rnn()
    _, applied = rewritten(program, [y], "splat_propagation")
    assert applied["splat_propagation"] == 1
    require_same_values(program, {"x": FEED["x"]}, [y], "splat_propagation", tolerance=1e-14)

"""Products that are only added up are added up as they are made."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

FEED = {"x": numpy.linspace(-1.0, 1.0, 6).reshape(2, 3), "y": numpy.linspace(2.0, 3.0, 6).reshape(2, 3)}


def data(name: str = "x") -> ol.Var:
    return ol.layer.data(name, shape=[3], dtype="float64")


@pytest.mark.parametrize(
    ("write", "product"),
    [
        (lambda x, y: ol.layer.mean(ol.op.square(x)), "inner_product(x=x, y=x, mean=true)"),
        (lambda x, y: ol.op.reduce_sum(ol.op.square(y)), "inner_product(x=y, y=y, mean=false)"),
        (lambda x, y: ol.op.reduce_sum(x * y), "inner_product(x=x, y=y, mean=false)"),
    ],
)
def test_a_reduction_of_products_is_one_op(write, product):
    with ol.Program() as program:
        cost = write(data(), data("y"))
    lines, applied = rewritten(program, [cost], "fuse_reductions")
    assert applied == {"fuse_reductions": 1}
    assert [line.partition(" = ")[2] for line in lines] == [product]
    require_same_values(program, FEED, [cost], "fuse_reductions", tolerance=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: ol.op.reduce_sum(ol.op.square(x), axis=0),
        lambda x, y: ol.op.reduce_sum(ol.op.square(x), keep=True),
        lambda x, y: ol.op.reduce_sum(x * 2.0),
        lambda x, y: ol.op.reduce_sum(x * ol.op.reduce_sum(y, axis=0)),
        lambda x, y: ol.layer.mean(ol.op.tanh(x)),
    ],
)
def test_other_reductions_stay(write):
    with ol.Program() as program:
        cost = write(data(), data("y"))
    assert rewritten(program, [cost], "fuse_reductions")[1] == {"fuse_reductions": 0}


def test_products_that_are_read_elsewhere_are_made():
    with ol.Program() as program:
        squares = ol.op.square(data())
        cost = ol.layer.mean(squares) + ol.layer.mean(ol.op.exp(squares))
    assert rewritten(program, [cost], "fuse_reductions")[1] == {"fuse_reductions": 0}


def test_a_training_step_is_the_same_after_the_passes():
    with ol.Program(seed=1) as program:
        x, y = data(), data("y")
        cost = ol.layer.mse(ol.layer.fc(ol.op.tanh(ol.layer.fc(x, 4)), 3), y)
        program.targets["cost"] = cost
        gradients = [gradient for _, gradient in ol.append_backward(cost)]
    _, applied = rewritten(program, [cost, *gradients], "simplify", "fold", "share", "scalarize", "fuse_reductions")
    assert (applied["scalarize"], applied["fuse_reductions"]) == (2, 1)
    require_same_values(program, FEED, [cost, *gradients], "simplify", "fold", "share", "scalarize", "fuse_reductions", tolerance=1e-12)

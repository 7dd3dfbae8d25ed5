"""Ops that change nothing are left out, where the types prove it."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

FEED = {"x": numpy.linspace(-1.0, 1.0, 6).reshape(2, 3)}


def data() -> ol.Var:
    return ol.layer.data("x", shape=[3], dtype="float64")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x + 0.0,
        lambda x: 0.0 + x,
        lambda x: x - 0.0,
        lambda x: x * 1.0,
        lambda x: x / 1.0,
        lambda x: ol.op.neg(ol.op.neg(x)),
        lambda x: ol.op.sum([x]),
        lambda x: ol.op.sum([ol.op.full_like(x, value=0.0, dtype="float64"), x]),
        lambda x: ol.op.concat([x]),
        lambda x: ol.op.assign(x),
        lambda x: ol.op.stop_gradient(x),
        lambda x: ol.op.cast(x, dtype="float64"),
        lambda x: ol.op.broadcast_to_like(x, x),
        lambda x: ol.op.sum_to_shape(x, ol.op.exp(x)),
        lambda x: ol.op.reshape(x, shape=(-1, 3)),
        lambda x: ol.op.reshape_like(ol.op.reshape(x, shape=(-1,)), x),
        lambda x: ol.op.transpose(ol.op.transpose(x, axes=(1, 0)), axes=(1, 0)),
        lambda x: ol.op.where(ol.op.greater(x, x), x, x),
    ],
)
def test_what_changes_nothing_is_left_out(write):
    with ol.Program() as program:
        x = data()
        y = ol.op.exp(write(x))
    lines, applied = rewritten(program, [y], "canonicalize")
    assert [line.partition(" = ")[2] for line in lines] == ["exp(x=x)"]
    assert applied["canonicalize"] > 0
    require_same_values(program, FEED, [y], "canonicalize")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x + 1.0,
        lambda x: 0.0 - x,
        lambda x: 1.0 / x,
        lambda x: x * 0.0,
        lambda x: ol.op.slice(x, axis=0, stop=1) + ol.op.full_like(x, value=0.0, dtype="float64"),
        lambda x: ol.op.cast(x, dtype="float32"),
        lambda x: ol.op.transpose(x, axes=(1, 0)),
        lambda x: ol.op.sum_to_shape(x, ol.op.reduce_sum(x, axis=0)),
    ],
)
def test_what_changes_something_stays(write):
    with ol.Program() as program:
        x = data()
        y = ol.op.exp(write(x))
    assert rewritten(program, [y], "canonicalize")[1] == {"canonicalize": 0}
    require_same_values(program, FEED, [y], "canonicalize")


def test_several_shapes_and_orders_are_one():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2, 3], dtype="float64")
        y = ol.op.exp(ol.op.reshape(ol.op.flatten(x, start=0), shape=(-1, 3)))
        z = ol.op.exp(ol.op.transpose(ol.op.transpose(x, axes=(1, 2, 0)), axes=(2, 1, 0)))
    lines, applied = rewritten(program, [y, z], "canonicalize")
    assert applied == {"canonicalize": 2}
    assert [line.partition(" = ")[2] for line in lines] == [
        "reshape(x=x, shape=shape[-1, 3])",
        "exp(x=reshape_0)",
        "transpose(x=x, axes=[0, 2, 1])",
        "exp(x=transpose_1)",
    ]
    require_same_values(program, {"x": numpy.arange(12.0).reshape(2, 2, 3)}, [y, z], "canonicalize")


def test_zeros_are_no_terms_of_a_sum():
    with ol.Program() as program:
        x = data()
        zeros = ol.op.full_like(x, value=0.0, dtype="float64")
        y = ol.op.exp(ol.op.sum([zeros, x, zeros, ol.op.tanh(x)]))
        z = ol.op.exp(ol.op.sum([zeros, zeros]))
    lines, _ = rewritten(program, [y, z], "canonicalize")
    assert [line.partition(" = ")[2] for line in lines if "sum" in line] == ["sum(xs=[x, tanh_0])", "exp(x=sum_0)"]
    require_same_values(program, FEED, [y, z], "canonicalize")


def test_nothing_is_computed_for_its_shape():
    with ol.Program() as program:
        x = data()
        y = ol.op.full_like(ol.op.square(ol.op.tanh(x) * 2.0), value=3.0)
    lines, applied = rewritten(program, [y], "canonicalize")
    assert applied == {"canonicalize": 1}
    assert lines == ["full_like_0: float32[n, 3] = full_like(like=x, dtype=float32, value=3.0)"]
    require_same_values(program, FEED, [y], "canonicalize")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: ol.op.flatten(ol.op.reshape(x, shape=(3, 2, 1)), start=1),
        lambda x: ol.op.flatten(ol.op.reshape(x, shape=(6,)), start=0),
        lambda x: ol.op.flatten(ol.op.reshape(x, shape=(3, -1)), start=1),
    ],
)
def test_axes_that_are_joined_are_those_of_the_shape_between(write):
    with ol.Program() as program:
        y = ol.op.exp(write(ol.layer.data("x", shape=[2, 3], dtype="float64", batch=None)))
    require_same_values(program, FEED, [y], "canonicalize")


# Slices of one value


def sliced(*cuts: tuple[int, int | None], axis: int = 1, kept: bool = False) -> tuple[ol.Program, ol.Var]:
    """A program with the square of the gradient of x, of which slices are read; where it is `kept`, x itself is read too."""
    with ol.Program() as program:
        x = data()
        x.stop_gradient = False
        cost = ol.op.reduce_sum(ol.op.square(x)) if kept else 0.0
        for number, (start, stop) in enumerate(cuts):
            part = ol.op.slice(x, axis=axis, start=start, stop=stop)
            cost = cost + ol.op.reduce_sum(ol.op.exp(part * float(number + 1)))
        (gradient,) = ol.gradients([cost], [x])
        return program, ol.op.square(gradient)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("cuts", [[(0, 1), (1, None)], [(-1, None), (0, 1), (1, 2)], [(0, 1), (1, 1), (1, 3)]])
def test_gradients_of_slices_that_make_up_a_whole_are_joined(cuts, kept):
    program, gradient = sliced(*cuts, kept=kept)
    lines, _ = rewritten(program, [gradient], "canonicalize")
    assert sum(" = concat(" in line for line in lines) == 1
    assert not any("slice_dx" in line for line in lines)
    assert sum(" = sum(" in line for line in lines) == kept
    require_same_values(program, FEED, [gradient], "canonicalize")


@pytest.mark.parametrize("cuts", [[(0, 2), (1, None)], [(0, 1), (2, None)], [(0, 1), (0, 1), (1, None)], [(1, 2), (2, None)]])
def test_gradients_of_slices_that_overlap_or_leave_something_out_are_added(cuts):
    program, gradient = sliced(*cuts)
    lines, _ = rewritten(program, [gradient], "canonicalize")
    assert not any("concat" in line for line in lines)
    require_same_values(program, FEED, [gradient], "canonicalize")


def test_a_whole_of_unknown_size_is_added():
    program, gradient = sliced((0, 1), (1, None), axis=0)
    assert not any("concat" in line for line in rewritten(program, [gradient], "canonicalize")[0])
    require_same_values(program, FEED, [gradient], "canonicalize")

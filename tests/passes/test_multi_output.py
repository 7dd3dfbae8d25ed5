"""Gradients that share work become one op, and those that cannot stand together stay apart."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

IMAGES = {"x": numpy.random.default_rng(0).standard_normal((2, 3, 6, 6))}
TOLERANCE = 1e-10


def data(name: str = "x", shape=(3, 6, 6), **options: object) -> ol.Var:
    return ol.layer.data(name, shape=list(shape), dtype="float64", **options)


def gradients(cost: ol.Var, *others: ol.Var) -> list[ol.Var]:
    trainable = [var for var in cost.block.program.main.vars.values() if var.trainable]
    return [var for var in ol.gradients([cost], [*others, *trainable]) if var is not None]


def joined(lines: list[str]) -> list[str]:
    return [line for line in lines if "_backward" in line]


def test_the_gradients_of_a_convolution_become_one_op():
    with ol.Program() as program:
        x = data()
        y = ol.layer.conv2d(x, 4, 3)
        found = gradients(ol.op.reduce_sum(ol.op.square(y)), x)
    lines, applied = rewritten(program, found, "multi_output_fusion")
    assert applied == {"multi_output_fusion": 1}
    assert joined(lines) == [
        "x@GRAD: float64[n, 3, 6, 6], conv2d_0.w@GRAD: float64[4, 3, 3, 3], conv2d_0.b@GRAD: float64[4]"
        " = conv2d_backward(x=x, filter=conv2d_0.w, dy=conv2d_0.out@GRAD, padding=[0, 0], stride=[1, 1])"
    ]
    assert not any("conv2d_d" in line.partition(" = ")[2] for line in lines)
    require_same_values(program, IMAGES, found, "multi_output_fusion", tolerance=TOLERANCE)


@pytest.mark.parametrize(
    ("bias", "of_x", "kernel"),
    [
        (False, True, "conv2d_backward_without_bias"),
        (True, False, "conv2d_backward_of_parameters"),
    ],
)
def test_of_the_joint_operators_that_fit_the_one_of_most_parts_is_taken(bias, of_x, kernel):
    with ol.Program() as program:
        x = data()
        y = ol.layer.conv2d(x, 4, 3, bias=bias)
        found = gradients(ol.op.reduce_sum(ol.op.square(y)), *([x] if of_x else []))
    lines, applied = rewritten(program, found, "multi_output_fusion")
    assert applied == {"multi_output_fusion": 1}
    assert kernel in joined(lines)[0]
    require_same_values(program, IMAGES, found, "multi_output_fusion", tolerance=TOLERANCE)


def test_gradients_at_one_output_that_two_convolutions_share_go_to_the_right_ones():
    with ol.Program() as program:
        x, z = data(), data("z")
        y = ol.layer.conv2d(x, 4, 3, bias=False) + ol.layer.conv2d(z, 4, 3, bias=False)
        found = gradients(ol.op.reduce_sum(ol.op.square(y)), x, z)
    assert rewritten(program, found, "multi_output_fusion")[1] == {"multi_output_fusion": 2}
    feed = {**IMAGES, "z": numpy.random.default_rng(1).standard_normal((2, 3, 6, 6))}
    require_same_values(program, feed, found, "multi_output_fusion", tolerance=TOLERANCE)


def test_gradients_of_other_shapes_or_attributes_are_not_joined():
    """Both convolutions get one gradient; what one of them needs of x, the other does not have."""
    with ol.Program() as program:
        x, z = data(), data("z", (3, 8, 8))
        w, v = (ol.layer.create_parameter([4, 3, size, size], dtype="float64", name=name) for name, size in (("w", 3), ("v", 5)))
        y = ol.op.conv2d(x, w) + ol.op.conv2d(z, v)
        dx, dv = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, v])
    assert rewritten(program, [dx, dv], "multi_output_fusion")[1] == {"multi_output_fusion": 0}
    with ol.Program() as program:
        x, z = data(), data("z")
        w, v = (ol.layer.create_parameter([4, 3, 3, 3], dtype="float64", name=name) for name in "wv")
        y = ol.op.conv2d(x, w, stride=(2, 2)) + ol.op.conv2d(z, v, stride=(2, 3), padding=(0, 1))
        dx, dv = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, v])
    assert rewritten(program, [dx, dv], "multi_output_fusion")[1] == {"multi_output_fusion": 0}
    with ol.Program() as program:  # one of them holds an attribute, the other its default
        x = data()
        w, v = (ol.layer.create_parameter([4, 3, 1, 1], dtype="float64", name=name) for name in "wv")
        y = ol.op.conv2d(x, w, dilation=(2, 2)) + ol.op.conv2d(data("z"), v)
        dx, dv = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, v])
    assert rewritten(program, [dx, dv], "multi_output_fusion")[1] == {"multi_output_fusion": 0}


def test_batch_norm_in_training_and_in_inference():
    with ol.Program() as program:
        x = data()
        y = ol.layer.batch_norm(x)
        found = gradients(ol.op.reduce_sum(ol.op.square(y)), x)
    lines, applied = rewritten(program, found, "multi_output_fusion")
    assert applied == {"multi_output_fusion": 1}
    assert "batch_norm_backward" in joined(lines)[0]
    scope = ol.init(program, ol.Scope())
    for training in (True, False):
        expected, actual = (
            executor.eval(program, found, IMAGES, scope=scope, training=training)
            for executor in (ol.Executor(interpret=True), ol.Executor(passes=("multi_output_fusion",)))
        )
        for one, other in zip(actual, expected, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)


def test_layer_norm_outside_a_loop_and_what_a_loop_has_given_away_of_it():
    """In the loop the slope stays, alone; the sums behind it are joined."""
    with ol.Program() as program:
        x = data(shape=("n", 4), batch="t")
        y = ol.layer.layer_norm(x)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(y)
            memory = rnn.memory(shape=[4])
            h = ol.op.tanh(ol.layer.layer_norm(step + rnn.previous_memory(memory)))
            rnn.update_memory(memory, h)
            rnn.output(h)
        found = gradients(ol.op.reduce_sum(ol.op.square(rnn())), x)
    lines, applied = rewritten(program, found, "batch_prologue", "batch_epilogue", "multi_output_fusion")
    assert applied["multi_output_fusion"] == 2
    assert sorted(line.partition(" = ")[2].partition("(")[0] for line in joined(lines)) == [
        "layer_norm_backward",
        "layer_norm_backward_of_parameters",
    ]
    assert sum("layer_norm_grad(" in line for line in lines) == 1
    feed = {"x": numpy.random.default_rng(2).standard_normal((5, 3, 4))}
    require_same_values(program, feed, found, "batch_prologue", "batch_epilogue", "multi_output_fusion", tolerance=TOLERANCE)


def test_what_reads_one_part_to_give_another_its_input_keeps_them_apart():
    """The second product reads what the first gives, so no place is left for both."""
    with ol.Program() as program:
        x, dy = data(), data("dy", (4, 4, 4))
        w = ol.layer.create_parameter([4, 3, 3, 3], dtype="float64", name="w")
        dx = ol.op.conv2d_dx(w, dy, x)
        dfilter = ol.op.conv2d_dfilter(ol.op.tanh(dx), dy, w)
    assert rewritten(program, [dx, dfilter], "multi_output_fusion")[1] == {"multi_output_fusion": 0}


def test_parts_whose_inputs_are_there_only_later_are_joined_where_the_last_stands():
    with ol.Program() as program:
        x, dy = data(), data("dy", (4, 4, 4))
        w = ol.layer.create_parameter([4, 3, 3, 3], dtype="float64", name="w")
        dx = ol.op.conv2d_dx(w, dy, x)
        late = ol.op.tanh(x)
        dfilter = ol.op.conv2d_dfilter(late, dy, w)
        y = ol.op.tanh(dx)
    lines, applied = rewritten(program, [y, dfilter], "multi_output_fusion")
    assert applied == {"multi_output_fusion": 1}
    assert [line.partition(" = ")[2].partition("(")[0] for line in lines if "uniform(" not in line] == [
        "tanh",
        "conv2d_backward_without_bias",
        "tanh",
    ]
    feed = {**IMAGES, "dy": numpy.random.default_rng(3).standard_normal((2, 4, 4, 4))}
    require_same_values(program, feed, [y, dfilter], "multi_output_fusion", tolerance=TOLERANCE)

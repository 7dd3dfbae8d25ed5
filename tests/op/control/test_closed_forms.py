"""The faults that other frameworks' control flow had, each as a small program whose values and gradients are known exactly."""

import math

import numpy
import pytest
import torch
from tolerances import ORACLES, VALUES
from twins import Twins, agree, run

import oarlock as ol

EXACT = VALUES[torch.float64]


def number(name, dtype="float64"):
    return ol.layer.data(name, shape=[], dtype=dtype, batch=None)


def counted(trips, carried, trip):
    """The values after `trips` trips (int64[]); `trip(values)` gives those that follow."""
    count = trips * 0
    loop = ol.while_loop(ol.op.less(count, trips))
    with loop.block():
        for var, value in zip(carried, trip(carried), strict=True):
            loop.carry(var, value)
        loop.carry(count, count + 1)
        loop.update_condition(ol.op.less(count + 1, trips))
    return loop()[:-1]


def derive(program, value, wanted, feed):
    """`value` and its derivatives, as numbers; each derivative is held against central differences too."""
    with program:
        found = ol.gradients([value], wanted)
    values = [float(array) for array in run(program, feed, [value, *found])]
    step = 1e-6
    for var, slope in zip(wanted, values[1:], strict=True):
        above, below = (run(program, feed | {var.name: feed[var.name] + sign * step}, [value])[0] for sign in (1, -1))
        assert math.isclose((above - below) / (2 * step), slope, rel_tol=1e-5, abs_tol=1e-5)
    return values


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("x", [1.1, -0.9])
def test_a_carried_value_that_is_squared_again_and_again(n, x):
    with ol.Program() as program:
        start, trips = number("x"), number("trips", "int64")
        (y,) = counted(trips, [start], lambda values: [values[0] * values[0]])
    value, slope = derive(program, y, [start], {"x": x, "trips": n})
    agree(value, x ** (2**n), EXACT)
    agree(slope, 2**n * x ** (2**n - 1), EXACT)
    if (n, x) == (3, 1.1):
        agree(slope, 15.5897368, ORACLES)  # 8 * 1.1**7


@pytest.mark.parametrize("n", range(5))
def test_a_captured_weight_is_multiplied_in_on_each_trip(n):
    with ol.Program() as program:
        start, w, trips = number("y"), number("w"), number("trips", "int64")
        (y,) = counted(trips, [start], lambda values: [values[0] * w])
    value, dy, dw = derive(program, y, [start, w], {"y": 1.5, "w": 0.7, "trips": n})
    agree([value, dy, dw], [1.5 * 0.7**n, 0.7**n, n * 0.7 ** (n - 1) * 1.5], EXACT)


@pytest.mark.parametrize(("n", "x"), [(3, 1.0), (0, 1.0), (1, 0.5), (4, -0.3)])
def test_a_value_that_is_read_and_then_replaced_is_differentiated_where_it_was_read(n, x):
    """y += x * x, then x = 2x. Reading the last x in every trip would give 112 in place of 42."""
    with ol.Program() as program:
        start, zero, trips = number("x"), number("zero"), number("trips", "int64")
        y, _ = counted(trips, [zero, start], lambda values: [values[0] + values[1] * values[1], values[1] + values[1]])
    value, slope = derive(program, y, [start], {"x": x, "zero": 0.0, "trips": n})
    agree([value, slope], [x * x * (4**n - 1) / 3, 2 * x * (4**n - 1) / 3], EXACT)
    if (n, x) == (3, 1.0):
        assert slope == 42.0


@pytest.mark.mission("B51")
def test_a_loop_whose_trips_the_data_decide():
    """While y < 100: y = y * w. From 1 by 3 that takes five trips."""
    with ol.Program() as program:
        start, w, limit = number("y"), number("w"), number("limit")
        loop = ol.while_loop(ol.op.less(start, limit))
        with loop.block():
            after = start * w
            loop.carry(start, after)
            loop.update_condition(ol.op.less(after, limit))
            loop.output(after)
        y, every = loop()
    feed = {"y": 1.0, "w": 3.0, "limit": 100.0}
    assert derive(program, y, [start, w], feed) == [243.0, 243.0, 405.0]
    assert run(program, feed, [every])[0].tolist() == [3.0, 9.0, 27.0, 81.0, 243.0]
    assert derive(program, y, [start, w], {"y": 200.0, "w": 3.0, "limit": 100.0}) == [200.0, 1.0, 0.0]


@pytest.mark.mission("B51")
def test_a_loop_of_no_trips_hands_its_values_and_their_gradients_through():
    def write(f, v):
        def trip(carried):
            return [carried[1] * v.w, carried[0]], []

        return f.repeat(lambda carried: f.less(f.total(carried[0]), v.limit), [v.x, v.y], trip)[0]

    arrays = {"x": numpy.arange(3.0), "y": numpy.ones(3), "w": numpy.full(3, 0.5), "limit": numpy.array(-5.0)}
    twins = Twins(write, arrays)
    twins.agree()
    twins.differ()
    x, y, *gradients = run(twins.program, arrays, [*twins.outputs, *twins.first[:3]])
    assert (x.tolist(), y.tolist()) == (arrays["x"].tolist(), arrays["y"].tolist())
    assert gradients[2].tolist() == [0.0, 0.0, 0.0]  # nothing captured has a part in it


ROWS = {
    "mixed": [[0.5, -1.0], [-0.25, 2.0], [4.0, 1.0], [-1.0, 0.5], [2.25, -0.5]],
    "all true": [[0.5, -1.0], [4.0, 1.0]],
    "all false": [[-0.5, -1.0], [-4.0, 1.0]],
    "one row that takes the one": [[0.5, -1.0]],
    "one row that takes the other": [[-0.5, -1.0]],
    "no rows": numpy.zeros((0, 2)),
}


def root_or_square(f, v):
    """sqrt of what is positive, w times the square of the rest."""
    return [f.rows(f.less(v.zero, v.x), v.x, lambda x: f.sqrt(x) * v.u, lambda x: f.square(x) * v.w)]


@pytest.mark.mission("B15")
@pytest.mark.parametrize("x", ROWS.values(), ids=ROWS)
def test_rows_take_either_block_and_come_back_in_their_order(x):
    """A block without rows runs too; its gradient is that of no rows, and what it captures has none."""
    x = numpy.asarray(x)[:, 0]
    arrays = {"x": x, "zero": numpy.array(0.0), "u": numpy.array(1.5), "w": numpy.array(-0.5)}
    twins = Twins(root_or_square, arrays, {"x": "n"})
    twins.agree()
    twins.differ()
    y, dx, du, dw = run(twins.program, arrays, [*twins.outputs, *twins.first[:1], *twins.first[2:]])
    agree(y, [1.5 * math.sqrt(item) if item > 0 else -0.5 * item * item for item in x], EXACT)
    assert dx.shape == x.shape
    assert bool(du) == bool((x > 0).any())
    assert bool(dw) == bool((x <= 0).any())


def test_a_root_of_the_positive_rows_leaves_no_nan_in_the_gradient_of_the_others():
    """`where(x > 0, sqrt(x), 0)` would: half of 1 / sqrt(-1), times zero."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(ol.op.sqrt(x) + ol.op.log(x) + 1.0 / x)
        with ie.false_block():
            ie.output(x * 0.0)
        y = ie(x > 0.0)
        (dx,) = ol.gradients([y], [x])
        (ddx,) = ol.gradients([dx], [x])
    values = run(program, {"x": numpy.array([-4.0, 0.0, 4.0, -0.0, 0.25])}, [y, dx, ddx])
    agree(values[0], [0, 0, 2 + math.log(4) + 0.25, 0, 0.5 + math.log(0.25) + 4], EXACT)
    agree(values[1], [0, 0, 0.25 + 0.25 - 0.0625, 0, 1 + 4 - 16], EXACT)
    agree(values[2], [0, 0, -0.25 / 8 - 1 / 16 + 2 / 64, 0, -0.25 / 0.125 - 16 + 128], EXACT)


def test_a_variable_in_two_slots_has_both_gradients():
    with ol.Program() as program:
        x, trips = number("x"), number("trips", "int64")
        taken = ol.cond(trips > 1, lambda: ol.op.multiply(x, x), lambda: x)
        (y,) = counted(trips, [taken], lambda values: [ol.op.multiply(values[0], x)])
    assert derive(program, taken, [x], {"x": 3.0, "trips": 2}) == [9.0, 6.0]
    value, slope = derive(program, y, [x], {"x": 3.0, "trips": 2})
    agree([value, slope], [81.0, 108.0], EXACT)


def test_a_variable_used_in_blocks_within_blocks_has_the_sum_of_all_gradients():
    """Five times: in the main block, in a loop, in a branch in the loop, in a loop in the branch, after them."""

    def write(f, v):
        def trip(carried):
            def deeper():
                return f.scan(v.steps, [carried[0] * v.w], lambda s, memories: ([], [f.tanh(memories[0] * v.w + s)]))[1][0]

            inside = f.switch([(f.less(f.total(carried[0]), v.limit), deeper)], lambda: carried[0] * v.w)
            return [inside * v.w, carried[1] + 1], []

        final, _ = f.repeat(lambda carried: f.less(carried[1], v.three), [v.x * v.w, v.three * 0], trip)
        return [final[0] * v.w]

    random = numpy.random.default_rng(2)
    arrays = {name: random.uniform(-1, 1, size=shape) for name, shape in (("x", 3), ("w", 3), ("steps", (2, 3)), ("limit", ()))}
    twins = Twins(write, arrays | {"three": numpy.array(3)})
    for limit in (-9.0, 0.1, 9.0):
        twins.agree(limit=limit)
        twins.differ(limit=limit)


def test_what_the_condition_was_computed_from_may_be_replaced_after_the_branch():
    """In SSA there is nothing to overwrite: the gradient follows the branch that was taken in each trip."""

    def write(f, v):
        def trip(carried):
            x = carried[0]
            y = f.switch([(f.less(x, v.half), lambda: x * v.u)], lambda: x * v.w)
            return [y, carried[1] + 1], [y]

        final, stacked = f.repeat(lambda carried: f.less(carried[1], v.four), [v.x, v.four * 0], trip)
        return [final[0], *stacked]

    arrays = {"x": 0.4, "half": 0.5, "u": 2.0, "w": 0.3, "four": numpy.array(4)}
    twins = Twins(write, arrays)
    twins.agree()
    twins.differ()
    final, stack = run(twins.program, arrays, twins.outputs)
    agree(stack, [0.8, 0.24, 0.48, 0.96], EXACT)  # u, w, u, u
    agree(final, 0.96, EXACT)


@pytest.mark.parametrize("kind", ["rnn", "while"])
def test_what_one_step_in_the_middle_returns_has_gradients_in_the_steps_before_it_only(kind):
    with ol.Program() as program:
        steps = ol.layer.data("steps", shape=[], dtype="float64", batch="t")
        start = number("start")
        if kind == "rnn":
            rnn = ol.rnn()
            with rnn.step():
                product = rnn.memory(init=start)
                rnn.update_memory(product, rnn.previous_memory(product) * rnn.step_input(steps))
                rnn.output(product.updated)
            every = rnn()
        else:
            count = ol.op.full(shape=(), value=0, dtype="int64")
            loop = ol.while_loop(count < 5)
            with loop.block():
                after = start * ol.op.gather(steps, count)
                loop.carry(start, after)
                loop.carry(count, count + 1)
                loop.update_condition(count + 1 < 5)
                loop.output(after)
            every = loop()[-1]
        middle = ol.op.gather(every, ol.op.full(shape=(), value=2, dtype="int64"))
        dsteps, dstart = ol.gradients([middle], [steps, start])
    values = run(program, {"steps": numpy.array([2.0, 3.0, 5.0, 7.0, 11.0]), "start": 1.0}, [middle, dsteps, dstart])
    assert [value.tolist() for value in values] == [30.0, [15.0, 10.0, 6.0, 0.0, 0.0], 30.0]

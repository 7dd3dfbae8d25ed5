"""Slices of axes whose sizes are symbols, beside NumPy: values, gradients and declared sizes, wherever a program may have them."""

import numpy as np
import pytest
import torch

import oarlock as ol
from oarlock.ir.diff import diff_programs
from oarlock.ir.size import evaluate
from oarlock.registry import parse_program

EXECUTORS = {
    "interpreter": {"interpret": True},
    "plan": {},
    "plan_without_passes": {"passes": ()},
}
CUTS = {
    ":512": slice(None, 512),
    "-4:": slice(-4, None),
    "5:": slice(5, None),
    "1:-1": slice(1, -1),
    ":-3": slice(None, -3),
    "-3:-1": slice(-3, -1),
    "-512:2": slice(-512, 2),
    "4:2": slice(4, 2),
    "::2": slice(None, None, 2),
    "1:600:3": slice(1, 600, 3),
    "::-1": slice(None, None, -1),
    "5::-2": slice(5, None, -2),
    "-2:1:-1": slice(-2, 1, -1),
    ":-4:-1": slice(None, -4, -1),
    "600:0:-3": slice(600, 0, -3),
    "maxima": slice(-(2**63), 2**63 - 1),
    "far": slice(2**63 - 1, None),
    "backwards_from_far": slice(2**63 - 1, -(2**63), -1),
}
SIZES = (0, 1, 2, 3, 4, 5, 7, 600)


def matrix(t: int, rows: int = 2) -> np.ndarray:
    return np.random.default_rng(t).normal(size=(rows, t))


def slope_of(x: np.ndarray, cut: object) -> np.ndarray:
    """The gradient of the sum of squares of a part."""
    slope = np.zeros_like(x)
    slope[cut] = 2 * x[cut]
    return slope


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("text", CUTS)
def test_a_slice_of_a_symbol_takes_what_numpy_takes(text: str, name: str):
    cut = (slice(None), CUTS[text])
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = x[cut]
        (slope,) = ol.gradients([ol.op.reduce_sum(y * y)], [x])
    for t in SIZES:
        given = matrix(t)
        found, gradient = ol.Executor(**EXECUTORS[name]).run(program, {"x": given}, [y, slope], scope=ol.Scope())
        assert np.array_equal(found, given[cut]), t
        assert np.array_equal(gradient, slope_of(given, cut)), t
        assert tuple(evaluate(size, {"n": 2, "t": t}) for size in y.shape) == found.shape


@pytest.mark.parametrize("text", CUTS)
def test_the_function_takes_what_the_brackets_take(text: str):
    cut = CUTS[text]
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = ol.op.slice(x, axis=-1, start=cut.start, stop=cut.stop, step=cut.step)
        assert y.shape == x[:, cut].shape
    for t in SIZES:
        (found,) = ol.Executor().run(program, {"x": matrix(t)}, [y], scope=ol.Scope())
        assert np.array_equal(found, matrix(t)[:, cut]), t


def test_parts_of_two_symbols_that_are_cut_alike_are_of_one_size():
    with ol.Program() as program:
        ids = ol.layer.data("ids", ["t"], dtype="float64")
        places = ol.layer.data("places", [1], dtype="float64", batch="t")
        inputs, labels = ids[:, :-1], ids[:, 1:]
        assert inputs.shape == labels.shape == ("n", "t-min(t,1)")
        short = ids[:, :512] + ol.op.reshape(places[:512], shape=(1, -1))
        assert short.shape == ("n", "min(t,512)")
        assert (short[:, :600] * short[:, -512:])[:, :8].shape == ("n", "min(t,8)")
        products = labels * inputs
    for t in (0, 1, 3, 600):
        found = ol.Executor().run(program, {"ids": matrix(t), "places": np.arange(t * 1.0)[:, None]}, [products, short], scope=ol.Scope())
        assert np.array_equal(found[0], matrix(t)[:, :-1] * matrix(t)[:, 1:])
        assert np.array_equal(found[1], matrix(t)[:, :512] + np.arange(t * 1.0)[:512])


def test_a_slice_that_names_show_to_be_within_keeps_its_size_and_is_not_clipped():
    with ol.Program():
        x = ol.layer.data("x", ["t+1"], dtype="float64")
        y = ol.layer.data("y", [3], dtype="float64")
        joined = ol.op.concat([x, y], axis=1)
        parts = [x[:, 1:], x[:, :-1], joined[:, 3:], joined[:, 1:-3], joined[:, :4], joined[:, -4:]]
    assert [part.shape[1] for part in parts] == ["t", "t", "t+1", "t", 4, 4]
    assert not any("clip" in part.op.attributes for part in parts)


def in_a_block(kind: str) -> tuple[ol.Program, list[ol.Var]]:
    """The sum of squares of parts of a row, [n, t], in a block, and its gradient."""
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        if kind == "cond":
            flag = ol.layer.data("flag", [], dtype="bool", batch=None)
            total = ol.cond(flag, lambda: _squares(x), lambda: ol.op.reduce_sum(x[:, ::-1][:, :2]))
        elif kind == "while":
            count = ol.layer.data("count", [], dtype="float64", batch=None)
            loop = ol.while_loop(count < 2.0, max_trips=5)
            with loop.block():
                after = count + 1.0
                loop.carry(count, after)
                loop.output(_squares(x) * after)
                loop.update_condition(after < 2.0)
            _, every = loop()
            total = ol.op.reduce_sum(every)
        else:
            steps = ol.layer.data("steps", [], dtype="float64", batch="s")
            rnn = ol.rnn()
            with rnn.step():
                rnn.output(_squares(x) * rnn.step_input(steps))
            total = ol.op.reduce_sum(rnn())
        (slope,) = ol.gradients([total], [x])
    return program, [total, slope]


def _squares(x: ol.Var) -> ol.Var:
    part = x[:, -4:600:2]
    return ol.op.reduce_sum(part * part)


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("kind", ["cond", "while", "rnn"])
def test_slices_in_blocks_take_what_numpy_takes(kind: str, name: str):
    program, wanted = in_a_block(kind)
    cut = (slice(None), slice(-4, 600, 2))
    fed = {"cond": {"flag": True}, "while": {"count": 0.0}, "rnn": {"steps": np.array([1.0, 2.0])}}[kind]
    times = 1.0 if kind == "cond" else 3.0
    for t in (0, 1, 3, 7):
        total, slope = ol.Executor(**EXECUTORS[name]).run(program, {"x": matrix(t), **fed}, wanted, scope=ol.Scope())
        assert np.allclose(total, times * np.square(matrix(t)[cut]).sum(), rtol=1e-12), t
        assert np.allclose(slope, times * slope_of(matrix(t), cut), rtol=1e-12), t


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_loop_over_a_part_of_a_sequence_takes_as_many_steps(name: str):
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64", batch="t")
        start = ol.op.full(shape=(2,), value=1.0, dtype="float64")
        part = x[1:5]
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(start)
            after = rnn.previous_memory(state) * rnn.step_input(part)
            rnn.update_memory(state, after)
            rnn.output(after)
        every = rnn()
        assert every.shape == ("-min(t,1)+min(t,5)", 2)
        (slope,) = ol.gradients([ol.op.reduce_sum(every)], [x])
    for t in (0, 1, 2, 3, 7):
        given = np.random.default_rng(t).normal(size=(t, 2))
        found, gradient = ol.Executor(**EXECUTORS[name]).run(program, {"x": given}, [every, slope], scope=ol.Scope())
        assert np.allclose(found, np.cumprod(given[1:5], axis=0), rtol=1e-12)
        assert gradient.shape == given.shape
        assert not gradient[:1].any()
        assert not gradient[5:].any()


@pytest.mark.parametrize("name", EXECUTORS)
def test_rows_of_a_ragged_input_are_cut_by_their_number(name: str):
    with ol.Program() as program:
        words = ol.layer.data("words", [], dtype="float64", ragged=1)
        first, last = words[:4], words[-3:]
        (slope,) = ol.gradients([ol.op.reduce_sum(first * first)], [words])
    for rows in ([], [[]], [[1.0]], [[1.0, 2.0], [], [3.0]], [[1.0, 2.0, 3.0, 4.0, 5.0]]):
        flat = np.array([word for row in rows for word in row])
        found = ol.Executor(**EXECUTORS[name]).run(program, {"words": rows}, [first, last, slope], scope=ol.Scope())
        for actual, expected in zip(found, [flat[:4], flat[-3:], slope_of(flat, slice(4))], strict=True):
            assert np.array_equal(actual, expected)


def test_a_prepared_step_takes_parts_of_whatever_size_is_fed():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = x[:, 1:512]
        (slope,) = ol.gradients([ol.op.reduce_sum(y * y)], [x])
    step = ol.Executor().prepare(program, [y, slope], scope=ol.Scope())
    for t in (3, 0, 600, 1, 3, 513, 2, 512, 0):
        given = matrix(t, rows=3)
        found, gradient = step({"x": given})
        assert np.array_equal(found, given[:, 1:512])
        assert np.array_equal(gradient, slope_of(given, (slice(None), slice(1, 512))))


def test_the_gradient_of_a_gradient_of_a_part_is_a_part():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = x[:, 1:3]
        (slope,) = ol.gradients([ol.op.reduce_sum(y * y * y)], [x])
        (curvature,) = ol.gradients([ol.op.reduce_sum(slope)], [x])
    for t in (0, 1, 2, 5):
        given = matrix(t)
        (found,) = ol.Executor().run(program, {"x": given}, [curvature], scope=ol.Scope())
        wanted = np.zeros_like(given)
        wanted[:, 1:3] = 6 * given[:, 1:3]
        assert np.allclose(found, wanted, rtol=1e-12)


def test_a_number_that_is_no_place_along_a_symbol_is_refused_before_anything_is_taken():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        parts = {3: x[:, 3], -1: x[:, -1], -4: x[:, -4]}
    for number, part in parts.items():
        for settings in EXECUTORS.values():
            for t in (0, 1, 3, 4, 7):
                if -t <= number < t:
                    (found,) = ol.Executor(**settings).run(program, {"x": matrix(t)}, [part], scope=ol.Scope())
                    assert np.array_equal(found, matrix(t)[:, number])
                    continue
                with pytest.raises(ol.ShapeError) as raised:
                    ol.Executor(**settings).run(program, {"x": matrix(t)}, [part], scope=ol.Scope())
                stop = "its end" if number == -1 else number + 1
                assert raised.value.message == f"slice: axis 1 has size {t}, so {number} to {stop} is out of range"


def test_several_axes_ellipses_and_new_axes_are_cut_as_in_numpy():
    keys = {
        "both": (slice(-2, None), slice(None, 512)),
        "ellipsis": (..., slice(1, 4)),
        "new": (slice(None, 3), None, slice(5, None, 2)),
        "back": (slice(None, None, -1), slice(4, 0, -2)),
        "list": (slice(None, 1), [0, -1]),
    }
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        parts = [x[key] for key in keys.values()]
    for rows, t in ((0, 3), (1, 1), (3, 2), (5, 7)):
        found = ol.Executor().run(program, {"x": matrix(t, rows)}, parts, scope=ol.Scope())
        for actual, key in zip(found, keys.values(), strict=True):
            assert np.array_equal(actual, matrix(t, rows)[key]), (key, rows, t)


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_new_axis_beside_a_part_of_no_elements(name: str):
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = x[:, 2:1, None]
        assert y.shape == ("n", 0, 1)
        (slope,) = ol.gradients([ol.op.reduce_sum(y)], [x])
    for t in (0, 3):
        found, gradient = ol.Executor(**EXECUTORS[name]).run(program, {"x": matrix(t)}, [y, slope], scope=ol.Scope())
        assert found.shape == (2, 0, 1)
        assert np.array_equal(gradient, np.zeros((2, t)))


def test_clipped_slices_survive_the_text_and_the_bytes_of_a_program():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = x[:, -512:2]
    again = ol.Program.from_bytes(program.to_bytes())
    for copied in (again, parse_program(str(program))):
        assert diff_programs(copied, program) == []
        assert copied.main.var(y.name).shape == ("n", "min(t,2)+min(t,512)-min(t,514)")
    (found,) = ol.Executor().run(again, {"x": matrix(7)}, [y.name], scope=ol.Scope())
    assert np.array_equal(found, matrix(7)[:, -512:2])


@pytest.mark.parametrize("name", EXECUTORS)
def test_one_row_of_a_symbol_broadcasts_to_all_of_them(name: str):
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = (x - x[:1]) * x[:, -1:]
        assert y.shape == x.shape
        (slope,) = ol.gradients([ol.op.reduce_sum(y)], [x])
        last = ol.op.squeeze(x[:, -1:], 1)
        assert last.shape == ("n",)
    for rows, t in ((0, 3), (1, 1), (3, 0), (3, 1), (4, 5)):
        given = torch.tensor(matrix(t, rows), requires_grad=True)
        wanted = (given - given[:1]) * given[:, -1:]
        (gradient,) = torch.autograd.grad(wanted.sum(), given)
        found = ol.Executor(**EXECUTORS[name]).run(program, {"x": matrix(t, rows)}, [y, slope], scope=ol.Scope())
        assert np.allclose(found[0], wanted.detach().numpy(), rtol=1e-12)
        assert np.allclose(found[1], gradient.numpy(), rtol=1e-12)
        if t:
            (column,) = ol.Executor(**EXECUTORS[name]).run(program, {"x": matrix(t, rows)}, [last], scope=ol.Scope())
            assert np.array_equal(column, matrix(t, rows)[:, -1])
    with pytest.raises(ol.ShapeError) as raised:
        ol.Executor(**EXECUTORS[name]).run(program, {"x": matrix(0, 3)}, [last], scope=ol.Scope())
    assert raised.value.message == "slice: axis 1 has size 0, so 0 to 1 is out of range"


def test_limits_count_a_clipped_part_before_it_is_taken():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"], dtype="float64")
        y = ol.op.concat([x[:, :3]] * 2, axis=1)
    limited = ol.Executor(limits=ol.RunLimits(live_bytes=2 * 8 * 600 + 2 * 8 * 3 * 3))
    (found,) = limited.run(program, {"x": matrix(600)}, [y], scope=ol.Scope())
    assert found.shape == (2, 6)
    with pytest.raises(ol.LimitError):
        ol.Executor(limits=ol.RunLimits(live_bytes=2 * 8 * 600 + 8)).run(program, {"x": matrix(600)}, [y], scope=ol.Scope())


def test_a_step_of_0_and_a_step_back_without_clipping_are_refused():
    with ol.Program():
        x = ol.layer.data("x", ["t"], dtype="float64")
        for write, message in (
            (lambda: x[:, ::0], "x[...]: the step of a slice must not be 0"),
            (lambda: ol.op.slice(x, axis=1, step=0), "slice: step is 0, but must not be 0"),
            (lambda: ol.op.slice(x, axis=1, step=-1, clip=False), "slice: step is -1, but must be at least 1 without clip"),
        ):
            with pytest.raises(ol.ArgumentError) as raised:
                write()
            assert raised.value.message == message
        with pytest.raises(ol.ShapeError) as refused:
            ol.op.slice(x, axis=2)
        assert refused.value.message == "slice: axis 2 is not an axis of x, which has 2 dimensions"

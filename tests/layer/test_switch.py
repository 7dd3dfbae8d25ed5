"""Switch, cond, case and switch_case: the first whose condition holds, and nothing else is run."""

import itertools

import numpy
import pytest
from twins import run

import oarlock as ol


def number(name, dtype="float64"):
    return ol.layer.data(name, shape=[], dtype=dtype, batch=None)


def fail_if_run(x):
    """A condition that cannot be computed: row 99 of a vector of one."""
    return ol.op.gather(ol.op.reshape(x, shape=(1,)), ol.op.full(shape=(), value=99, dtype="int64")) > 0.0


CHOICES = list(itertools.product([False, True], repeat=3))


def three_cases(as_functions):
    """x times 2, 3, 5 or 7 where a, b, c or nothing holds; and its gradient."""
    with ol.Program() as program:
        x = number("x")
        conditions = [number(name, "bool") for name in "abc"]
        switch = ol.switch()
        for condition, factor in zip(conditions, (2.0, 3.0, 5.0), strict=True):
            with switch.case((lambda condition=condition: ol.op.logical_and(condition, condition)) if as_functions else condition):
                switch.output(x * factor, ol.op.full(shape=(), value=int(factor), dtype="int64"))
        with switch.default():
            switch.output(x * 7.0, ol.op.full(shape=(), value=7, dtype="int64"))
        y, which = switch()
        (dx,) = ol.gradients([y], [x])
    return program, [y, which, dx]


@pytest.mark.mission("B52")
@pytest.mark.parametrize("as_functions", [False, True])
@pytest.mark.parametrize("holds", CHOICES)
def test_the_first_whose_condition_holds_is_the_only_one(holds, as_functions):
    program, outputs = three_cases(as_functions)
    first = next((number for number, condition in enumerate(holds) if condition), 3)
    factor = (2, 3, 5, 7)[first]
    feed = {"x": 10.0} | dict(zip("abc", holds, strict=True))
    assert [value.tolist() for value in run(program, feed, outputs)] == [10.0 * factor, factor, factor]
    _, scopes = ol.Executor().run(program, feed, [outputs[0]], scope=ol.Scope(), keep_scopes=True)
    name = ("case_0", "case_1", "case_2", "default")[first]
    ran = [path for path in scopes if "condition" not in path and "@GRAD" not in path]
    assert ran == ["main", f"main/switch_0.{name}"]


@pytest.mark.mission("B52", "B4")
def test_a_condition_that_is_a_function_is_computed_only_where_no_case_before_it_holds():
    with ol.Program() as program:
        x, first = number("x"), number("first", "bool")
        switch = ol.switch()
        with switch.case(first):
            switch.output(x)
        with switch.case(lambda: fail_if_run(x)):
            switch.output(x + 1.0)
        with switch.default():
            switch.output(x + 2.0)
        y = switch()
    assert run(program, {"x": 3.0, "first": True}, [y]) == [3.0]
    with pytest.raises(ol.KernelError, match="^gather: row 99 is out of range: x has 1 row") as caught:
        run(program, {"x": 3.0, "first": False}, [y])
    assert "switch_0.case_1_condition" in str(caught.value)


@pytest.mark.mission("B52")
def test_blocks_that_are_not_chosen_are_not_run():
    """Nor are their gradients."""
    with ol.Program() as program:
        x, good = number("x"), number("good", "bool")
        y = ol.cond(
            good, lambda: ol.op.sqrt(x), lambda: ol.op.gather(ol.op.reshape(x, shape=(1,)), ol.op.full(shape=(), value=9, dtype="int64"))
        )
        (dx,) = ol.gradients([y], [x])
    assert run(program, {"x": 4.0, "good": True}, [y, dx]) == [2.0, 0.25]
    with pytest.raises(ol.KernelError):
        run(program, {"x": 4.0, "good": False}, [y])


def test_a_condition_of_one_element_is_one_condition():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64", batch=None)
        y = ol.cond(x > 0.0, lambda: x, lambda: -x)
    assert [run(program, {"x": [value]}, [y])[0].tolist() for value in (2.0, -3.0)] == [[2.0], [3.0]]


@pytest.mark.mission("C27")
def test_one_family_chooses_for_each_row_and_one_for_all_of_them():
    """The same blocks by `ifelse` and by `cond`: of rows 1 and -1 the one takes both, the other, by their sum, one."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(x * 2.0)
        with ie.false_block():
            ie.output(x * 3.0)
        by_row = ie(x > 0.0)
        of_all = ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x * 3.0)
    values = run(program, {"x": numpy.array([[2.0], [-1.0]])}, [by_row, of_all])
    assert [value.ravel().tolist() for value in values] == [[4.0, -3.0], [4.0, -2.0]]


@pytest.mark.mission("B52")
@pytest.mark.parametrize("several", [tuple, list])
def test_cond_returns_one_value_or_as_many_as_its_functions_return(several):
    with ol.Program() as program:
        x, holds = number("x"), number("holds", "bool")
        one = ol.cond(holds, lambda: x, lambda: -x)
        two = ol.cond(holds, lambda: several([x, x + 1.0]), lambda: several([x * x, x]))
        lone = ol.cond(holds, lambda: several([x]), lambda: several([x * x]))
        assert isinstance(two, tuple)
        fetch = [one, *two, lone]
    assert run(program, {"x": 3.0, "holds": True}, fetch) == [3.0, 3.0, 4.0, 3.0]
    assert run(program, {"x": 3.0, "holds": False}, fetch) == [-3.0, 9.0, 3.0, 9.0]


def test_the_functions_of_cond_are_called_once_each_in_their_own_block():
    called = []

    def write(name, x):
        called.append(name)
        return ol.op.tanh(x, name=name)

    with ol.Program() as program:
        x, holds = number("x"), number("holds", "bool")
        ol.cond(holds, lambda: write("yes", x), lambda: write("no", x))
    assert called == ["yes", "no"]
    assert [(block.path, list(block.vars)) for block in program.blocks[1:]] == [
        ("main/cond_0.true", ["yes"]),
        ("main/cond_0.false", ["no"]),
    ]


@pytest.mark.mission("B52")
def test_case_takes_the_first_pair_whose_condition_holds():
    with ol.Program() as program:
        x = number("x")
        y = ol.case([(x < 0.0, lambda: -x), (lambda: x < 1.0, lambda: x * x), (lambda: x < 2.0, lambda: x)], lambda: x * 0.0 + 2.0)
        (dx,) = ol.gradients([y], [x])
    pairs = [[float(value) for value in run(program, {"x": x}, [y, dx])] for x in (-3.0, 0.5, 1.5, 9.0)]
    assert pairs == [[3.0, -1.0], [0.25, 1.0], [1.5, 1.0], [2.0, 0.0]]


@pytest.mark.mission("B52")
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_switch_case_goes_by_a_whole_number(dtype):
    with ol.Program() as program:
        x, index = number("x"), number("index", dtype)
        y = ol.switch_case(index, {3: lambda: x, 0: lambda: -x, -7: lambda: x * x}, lambda: x + 100.0)
    assert [float(run(program, {"x": 5.0, "index": index}, [y])[0]) for index in (0, 3, -7, 1)] == [-5.0, 5.0, 25.0, 105.0]


def test_an_outer_variable_is_returned_as_it_is():
    with ol.Program() as program:
        x, holds = number("x"), number("holds", "bool")
        y = ol.cond(holds, lambda: x, lambda: x + 1.0)
        (dx,) = ol.gradients([y * y], [x])
    assert run(program, {"x": 3.0, "holds": True}, [y, dx]) == [3.0, 6.0]
    assert run(program, {"x": 3.0, "holds": False}, [y, dx]) == [4.0, 8.0]


def test_a_variable_that_only_a_block_which_did_not_run_reads_has_a_gradient_of_zeros():
    with ol.Program() as program:
        x, w, holds = number("x"), ol.layer.data("w", shape=[2, 3], dtype="float64", batch=None), number("holds", "bool")
        y = ol.cond(holds, lambda: x, lambda: x * ol.op.reduce_sum(w))
        (dw,) = ol.gradients([y], [w])
    for holds in (True, False):
        assert run(program, {"x": 3.0, "w": numpy.ones((2, 3)), "holds": holds}, [dw])[0].tolist() == [[0.0 if holds else 3.0] * 3] * 2


def test_a_switch_in_a_loop_chooses_anew_in_each_step():
    with ol.Program() as program:
        steps = ol.layer.data("steps", shape=[], dtype="float64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            x = rnn.step_input(steps)
            rnn.output(ol.case([(x < 0.0, lambda: -x)], lambda: ol.op.sqrt(x)))
        y = rnn()
        (dx,) = ol.gradients([y], [steps])
    values = run(program, {"steps": numpy.array([4.0, -4.0, 0.25])}, [y, dx])
    assert [value.tolist() for value in values] == [[2.0, 4.0, 0.5], [0.25, -1.0, 1.0]]


def test_an_exception_in_a_case_takes_it_back_with_its_condition():
    with ol.Program() as program:
        x = number("x")
        switch = ol.switch()
        with switch.case(x > 0.0):
            switch.output(x)
        with pytest.raises(KeyError), switch.case(lambda: x < 0.0):
            raise KeyError
        with pytest.raises(KeyError):
            switch.case(lambda: {}["x"])
        assert [block.name for block in program.blocks] == ["main", "switch_0.case_0"]
        with switch.default():
            switch.output(-x)
        y = switch()
    assert run(program, {"x": -2.0}, [y]) == [2.0]


def test_a_switch_that_is_refused_leaves_no_block_behind():
    with ol.Program() as program:
        x = number("x")
        for wrong in (lambda: ol.op.reshape(x, shape=(1,)), lambda: (x, x), lambda: ol.op.cast(x, dtype="int64")):
            with pytest.raises((ol.ShapeError, ol.ProgramError)):
                ol.case([(x < 0.0, lambda: x), (lambda: x < 1.0, wrong)], lambda: x)
        assert [block.name for block in program.blocks] == ["main"]


@pytest.mark.parametrize("second", [3, lambda z: z])
def test_functions_are_refused_before_anything_is_written(second):
    with ol.Program() as program:
        x, holds = number("x"), ol.layer.data("holds", shape=[], dtype="bool", batch=None)
        for write in (lambda: ol.cond(holds, lambda: x, second), lambda: ol.case([(holds, lambda: x)], second)):
            with pytest.raises(ol.ArgumentError, match="a block must be a function"):
                write()
        assert [(block.name, len(block.ops)) for block in program.blocks] == [("main", 0)]

"""Rows sent different ways and brought together again, in programs that do not know how many there are."""

import numpy
import pytest

import oarlock as ol

X = numpy.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0], [7.0, 8.0]])
CONDITIONS = [[True, False, False, True], [True] * 4, [False] * 4, []]


def run(program: ol.Program, feed: dict[str, numpy.ndarray], fetch: list[ol.Var]) -> list[numpy.ndarray]:
    return ol.Executor(check=True).run(program, feed, fetch, scope=ol.Scope())


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_rows_that_go_two_ways_come_back_in_order_and_their_gradients_go_the_same_ways(condition):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        c = ol.layer.data("c", shape=[], dtype="bool")
        yes, no = ol.op.gather(x, ol.op.nonzero(c)), ol.op.gather(x, ol.op.nonzero(c, value=False))
        same, merged = ol.op.merge(c, yes, no), ol.op.merge(c, ol.op.square(yes), no * 3.0)
        assert yes.shape[0] != no.shape[0] != "n", "values tell how many rows go which way"
        assert same.shape == merged.shape == ("n", 2)
        (dx,) = ol.gradients([merged], [x])
        (ddx,) = ol.gradients([dx], [x])
    assert dx.shape == ("n", 2)
    rows = X[: len(condition)]
    column = numpy.array(condition, dtype=bool)[:, None]
    found = run(program, {"x": rows, "c": column[:, 0]}, [same, merged, dx, ddx])
    expected = [rows, numpy.where(column, rows**2, rows * 3), numpy.where(column, rows * 2, 3.0), numpy.where(column, 2.0, 0.0)]
    for actual, wanted in zip(found, expected, strict=True):
        assert numpy.array_equal(actual, numpy.broadcast_to(wanted, rows.shape))


def test_integers_and_bools_are_routed_too_and_carry_no_gradient():
    with ol.Program() as program:
        table = ol.layer.data("table", shape=[3, 2], dtype="float64", batch=None)
        logits = ol.layer.data("logits", shape=[3], dtype="float64")
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        likely = ol.op.argmax(logits)
        c = ol.op.not_equal(likely, ids)
        best = ol.op.merge(c, ol.op.gather(likely, ol.op.nonzero(c)), ol.op.gather(ids, ol.op.nonzero(c, value=False)))
        flags = ol.op.merge(c, ol.op.gather(c, ol.op.nonzero(c)), ol.op.gather(ol.op.logical_not(c), ol.op.nonzero(c, value=False)))
        looked_up = ol.op.gather(table, best)
        assert (str(best.dtype), str(flags.dtype), looked_up.shape) == ("int64", "bool", ("n", 2))
        dtable, dlogits = ol.gradients([looked_up], [table, logits])
    assert dlogits is None
    feed = {"table": numpy.arange(6.0).reshape(3, 2), "logits": numpy.eye(3)[[2, 0, 2]], "ids": numpy.array([2, 1, 0])}
    values = run(program, feed, [best, flags, looked_up, dtable])
    assert values[0].tolist() == [2, 0, 2]
    assert values[1].all()
    assert values[2].tolist() == [[4, 5], [0, 1], [4, 5]]
    assert values[3].tolist() == [[1, 1], [0, 0], [2, 2]]


def test_rows_that_are_not_as_many_as_the_condition_asks_for_fail_at_their_line():
    with ol.Program() as program:
        yes, no = (ol.layer.data(name, shape=[2], dtype="float64", batch=name) for name in ("p", "q"))
        c = ol.layer.data("c", shape=[], dtype="bool")
        merged = ol.op.merge(c, yes, no)
    condition = numpy.array([True, True, False, True])
    with pytest.raises(ol.KernelError) as raised:
        run(program, {"p": X[:2], "q": X[:2], "c": condition}, [merged])
    assert raised.value.message == "merge: the condition is true for 3 rows and false for 1, but yes has 2 and no has 2"
    assert raised.value.location == merged.op.location
    with pytest.raises(ol.ShapeError) as raised:
        run(program, {"p": X, "q": X, "c": condition}, [merged])
    assert raised.value.message == "merge: condition has 4 elements, but yes has 4 rows and no has 4"
    assert raised.value.location == merged.op.location


@pytest.mark.parametrize(("ran", "gradients"), [(0, [(1, 2), (0, 2)]), (1, [(0, 2), (1, 2)])])
def test_the_gradient_of_a_value_that_was_chosen_is_a_row_for_the_stack_it_came_from(ran, gradients):
    with ol.Program() as program:
        stacks = [ol.layer.data(name, shape=[2], dtype="float64", batch=name) for name in ("a", "b")]
        chosen = ol.op.select_branch(stacks)
        assert chosen.shape == (2,)
        found = ol.gradients([ol.op.square(chosen)], stacks)
    feed = {name: X[: number == ran] for number, name in enumerate("ab")}
    value, *parts = run(program, feed, [chosen, *found])
    assert numpy.array_equal(value, X[0])
    assert [part.shape for part in parts] == gradients
    assert numpy.array_equal(parts[ran], 2 * X[:1])


def test_a_slice_of_an_axis_of_unknown_size_is_as_long_as_what_is_fed_allows():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        slices = [ol.op.slice(x, start=1), ol.op.slice(x, start=-2), ol.op.slice(x, start=1, stop=-1), ol.op.slice(x, stop=2)]
    assert [item.shape[0] for item in slices] == ["n-min(n,1)", "min(n,2)", "n-min(n,2)", "min(n,2)"]
    for rows in (0, 1, 2, 4):
        values = run(program, {"x": X[:rows]}, slices)
        for actual, expected in zip(values, [X[:rows][1:], X[:rows][-2:], X[:rows][1:-1], X[:rows][:2]], strict=True):
            assert numpy.array_equal(actual, expected)


def test_a_slice_that_is_not_clipped_is_refused_where_what_is_fed_has_not_its_places():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        slices = [ol.op.slice(x, start=start, stop=stop, clip=False) for start, stop in ((1, None), (-2, None), (1, -1), (0, 2))]
    assert [item.shape for item in slices] == [("n-1", 2), (2, 2), ("n-2", 2), (2, 2)]
    with pytest.raises(ol.ShapeError) as raised:
        run(program, {"x": X[:1]}, [slices[1]])
    assert raised.value.message == "slice: axis 0 has size 1, so -2 to its end is out of range"

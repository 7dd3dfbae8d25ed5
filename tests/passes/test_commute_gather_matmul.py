"""Rows of a table are multiplied once each where they are asked for more often, whichever way that is decided when it runs."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

TOLERANCE = 1e-12
IDS = {"few": [4, 0, 4], "many": [4, 0, 4, 1, 1, 1, 3, 0, 4, 4, 4, 3]}  # fewer than twice the rows of the table, and more


def ids() -> ol.Var:
    return ol.layer.data("ids", shape=[], dtype="int64")


def table(rows: int = 5, name: str = "table") -> ol.Var:
    return ol.layer.create_parameter([rows, 2], name=name, dtype="float64")


def matrix(name: str = "w", size: int = 3) -> ol.Var:
    return ol.layer.create_parameter([2, size], name=name, dtype="float64")


def cost_of(y: ol.Var) -> ol.Var:
    return ol.op.reduce_sum(ol.op.square(ol.op.tanh(y)))


def gradients(cost: ol.Var) -> list[ol.Var]:
    trainable = [var for var in cost.block.program.main.vars.values() if var.trainable]
    return [var for var in ol.gradients([cost], trainable) if var is not None]


def types(lines: list[str]) -> list[str]:
    return [line.partition(" = ")[2].partition("(")[0] for line in lines]


def test_a_product_of_looked_up_rows_knows_the_table_and_so_do_its_gradients():
    with ol.Program(seed=1) as program:
        bias = ol.layer.create_parameter([3], name="b", dtype="float64")
        y = ol.op.linear(ol.op.gather(table(), ids()), matrix(), bias)
        found = gradients(ol.op.reduce_sum(y))
    before, _ = rewritten(program, [y, *found])
    assert {"gather", "linear", "linear_dx", "linear_dw", "scatter_add"} <= set(types(before))
    lines, applied = rewritten(program, [y, *found], "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 3}
    text = "\n".join(line for line in lines if "embedding" in line or "gather" in line or "scatter_add(" in line)
    assert text == (
        "linear_0: float64[n, 3] = embedding_linear(x=table, rows=ids, w=w, bias=b)\n"
        "w@GRAD: float64[2, 3] = embedding_linear_dw(x=table, rows=ids, dout=linear_0@GRAD)\n"
        "table@GRAD: float64[5, 2] = embedding_linear_dx(rows=ids, w=w, x_shape=table, dout=linear_0@GRAD)"
    )
    lines, applied = rewritten(program, [y, *found], "commute_gather_matmul", "multi_output_fusion")
    assert applied == {"commute_gather_matmul": 3, "multi_output_fusion": 1}
    assert "embedding_linear_backward" in types(lines)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("passes", [("commute_gather_matmul",), ("commute_gather_matmul", "multi_output_fusion")])
@pytest.mark.parametrize("asked", IDS)
def test_values_and_gradients_stay_however_often_rows_are_asked_for(asked, passes, bias):
    with ol.Program(seed=1) as program:
        hidden = ol.op.gather(table(), ids())
        y = ol.op.linear(hidden, matrix(), ol.layer.create_parameter([3], name="b", dtype="float64") if bias else None)
        found = [y, *gradients(cost_of(y))]
    assert rewritten(program, found, *passes)[1]["commute_gather_matmul"] == 3
    require_same_values(program, {"ids": numpy.array(IDS[asked])}, found, *passes, tolerance=TOLERANCE)


@pytest.mark.parametrize("asked", IDS)
def test_gradients_of_gradients_stay(asked):
    with ol.Program(seed=1) as program:
        e, w = table(), matrix()
        y = ol.op.linear(ol.op.gather(e, ids()), w)
        slopes = ol.gradients([cost_of(y)], [e, w])
        found = [*slopes, *gradients(ol.op.reduce_sum(ol.op.square(slopes[0])) + ol.op.reduce_sum(ol.op.tanh(slopes[1])))]
    assert rewritten(program, found, "commute_gather_matmul")[1]["commute_gather_matmul"] > 3
    require_same_values(
        program, {"ids": numpy.array(IDS[asked])}, found, "commute_gather_matmul", "multi_output_fusion", tolerance=TOLERANCE
    )


def test_several_products_of_the_same_rows_are_exchanged_and_a_shape_that_is_read_keeps_the_lookup():
    with ol.Program(seed=1) as program:
        hidden = ol.op.gather(table(), ids())
        zeros = ol.op.full_like(hidden, value=0.5, dtype="float64")
        y = ol.op.linear(hidden, matrix("w")) + ol.op.linear(hidden, matrix("v")) + ol.op.linear(zeros, matrix("u"))
        found = [y, *gradients(cost_of(y))]
    lines, applied = rewritten(program, found, "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 4}, "the gradient of the table is put there once, of a sum"
    assert (types(lines).count("embedding_linear"), types(lines).count("embedding_linear_dw"), types(lines).count("gather")) == (2, 2, 1)
    assert types(lines).index("embedding_linear") < types(lines).index("gather")
    for asked in IDS.values():
        require_same_values(program, {"ids": numpy.array(asked)}, found, "commute_gather_matmul", tolerance=TOLERANCE)


def _read_elsewhere():
    hidden = ol.op.gather(table(), ids())
    return [ol.op.linear(hidden, matrix()), ol.op.tanh(hidden)]


def _wanted():
    hidden = ol.op.gather(table(), ids())
    return [ol.op.linear(hidden, matrix()), hidden]


def _matrix_that_comes_later():
    hidden = ol.op.gather(table(), ids())
    return [ol.op.linear(hidden, ol.op.tanh(matrix()))]


def _table_that_grows():
    return [ol.op.linear(ol.op.gather(ol.layer.data("x", shape=[2], dtype="float64"), ids()), matrix())]


def _table_that_is_larger():
    return [ol.op.linear(ol.op.gather(table(5), ol.layer.data("nine", shape=[9], dtype="int64", batch=None)), matrix())]


def _table_of_matrices():
    cubes = ol.layer.create_parameter([5, 4, 2], name="cubes", dtype="float64")
    return [ol.op.linear(ol.op.gather(cubes, ids()), matrix())]


def _row_of_numbers():
    numbers = ol.layer.create_parameter([5], name="numbers", dtype="float64")
    return [ol.op.linear(ol.op.gather(numbers, ol.layer.data("pairs", shape=[2], dtype="int64")), matrix())]


@pytest.mark.parametrize(
    "write",
    [
        _read_elsewhere,
        _wanted,
        _matrix_that_comes_later,
        _table_that_grows,
        _table_that_is_larger,
        _table_of_matrices,
        _row_of_numbers,
    ],
)
def test_other_lookups_stay(write):
    with ol.Program(seed=1) as program:
        found = write()
    lines, applied = rewritten(program, found, "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 0}
    assert "gather" in types(lines)


def test_the_gradient_of_the_table_is_exchanged_where_the_rows_are_read_otherwise_but_not_where_it_is_more_than_a_product():
    with ol.Program(seed=1) as program:
        hidden = ol.op.gather(table(), ids())
        y = ol.op.linear(hidden, matrix())
        (slope,) = ol.gradients([cost_of(y)], [program.main.var("table")])
    lines, applied = rewritten(program, [y, hidden, slope], "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 1}
    assert "embedding_linear_dx" in types(lines)
    for asked in IDS.values():
        require_same_values(program, {"ids": numpy.array(asked)}, [y, hidden, slope], "commute_gather_matmul", tolerance=TOLERANCE)
    with ol.Program(seed=1) as program:
        hidden = ol.op.gather(table(), ids())
        more = gradients(cost_of(ol.op.linear(hidden, matrix())) + cost_of(hidden))
    lines, applied = rewritten(program, more, "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 0}
    assert "scatter_add" in types(lines)


@pytest.mark.parametrize("asked", IDS)
def test_rows_that_nobody_asks_for_may_be_infinite(asked):
    with ol.Program(seed=1) as program:
        y = ol.op.linear(ol.op.gather(table(), ids()), matrix())
        found = [y, *gradients(cost_of(y))]
    scope = ol.init(program, ol.Scope())
    held = scope["table"].clone()
    held[2] = numpy.inf
    scope["table"] = held
    feed = {"ids": numpy.array(IDS[asked])}
    expected = ol.Executor(interpret=True).eval(program, found, feed, scope=scope)
    actual = ol.Executor(passes=("commute_gather_matmul", "multi_output_fusion")).eval(program, found, feed, scope=scope)
    for one, other in zip(actual, expected, strict=True):
        assert numpy.isfinite(one).all()
        numpy.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("asked", [[0, 5], [5, *IDS["many"]], [-1, *IDS["many"]]])
def test_a_row_that_is_not_there_is_refused_in_the_same_words(asked):
    with ol.Program(seed=1) as program:
        y = ol.op.linear(ol.op.gather(table(), ids()), matrix())
        found = [y, *gradients(cost_of(y))]
    scope = ol.init(program, ol.Scope())
    errors = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=("commute_gather_matmul",))):
        with pytest.raises(ol.KernelError) as caught:
            executor.eval(program, found, {"ids": numpy.array(asked)}, scope=scope)
        errors.append(caught.value)
    assert errors[0].message.startswith("gather: row ")
    assert (errors[0].message, errors[0].location, errors[0].given) == (errors[1].message, errors[1].location, errors[1].given)


@pytest.mark.parametrize("optimizer", [ol.optimizer.SGD(0.1), ol.optimizer.Adam(0.1)])
def test_training_a_recurrent_network_of_words_is_the_same_after_all_passes(optimizer):
    with ol.Program(seed=1) as program:
        words = ol.layer.data("words", shape=["n"], dtype="int64", batch="t")
        embedded = ol.layer.embedding(words, (5, 4), dtype="float64")
        start = ol.layer.data("start", shape=[3], dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(embedded)
            state = rnn.memory(init=start)
            both = ol.layer.fc(step, 3) + ol.layer.fc(rnn.previous_memory(state), 3, bias=False)
            rnn.update_memory(state, ol.op.tanh(both))
            rnn.output(ol.op.tanh(both))
        cost = ol.layer.mean(ol.op.square(rnn()))
        optimizer.minimize(cost)
    feed = {"words": numpy.random.default_rng(0).integers(5, size=(6, 4)), "start": numpy.zeros((4, 3))}
    executors = (ol.Executor(interpret=True), ol.Executor())
    assert executors[1].plan(program, [cost]).applied["commute_gather_matmul"] == 3
    scopes = [ol.init(program, ol.Scope()) for _ in executors]
    for _ in range(3):
        for executor, scope in zip(executors, scopes, strict=True):
            executor.run(program, feed, [cost], scope=scope)
    for var in program.parameters():
        numpy.testing.assert_allclose(scopes[0][var.name].numpy(), scopes[1][var.name].numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [(5, 7), (7, 5), (5, 5)])
def test_the_gradients_of_two_tables_of_which_the_same_rows_are_taken_stay_apart(rows):
    """Gradients put in the rows of one table are not put in those of the other: that has another number of them."""
    with ol.Program(seed=1) as program:
        tables, w, asked = [table(count, name) for count, name in zip(rows, ("one", "other"), strict=True)], matrix(), ids()
        ys = [ol.op.linear(ol.op.gather(each, asked), w) for each in tables]
        found = [*ys, *gradients(cost_of(ys[0] * ys[1]))]
    lines, applied = rewritten(program, found, "commute_gather_matmul")
    assert applied == {"commute_gather_matmul": 6}
    taken = [line for line in lines if "embedding_linear_dx" in line]
    assert sorted(line.partition(":")[0] for line in taken) == ["one@GRAD", "other@GRAD"]
    assert all(f"x_shape={line.partition('@')[0]}," in line for line in taken)
    for asked_for in IDS.values():
        require_same_values(program, {"ids": numpy.array(asked_for)}, found, "commute_gather_matmul", tolerance=TOLERANCE)


@pytest.mark.parametrize(("rows", "update"), [(8192, "sgd"), (8193, "sparse_sgd")])
def test_the_gradient_of_a_large_table_is_left_to_an_update_that_takes_its_rows(rows, update):
    with ol.Program(seed=1) as program:
        cost = cost_of(ol.op.linear(ol.op.gather(table(rows), ids()), matrix()))
        ol.optimizer.SGD(0.1).minimize(cost)
    lines, applied = rewritten(program, [cost], "commute_gather_matmul", "fuse_updates")
    assert ("embedding_linear_dx" in types(lines)) is (update == "sgd")
    assert applied["commute_gather_matmul"] == (3 if update == "sgd" else 2)
    assert update in types(lines)

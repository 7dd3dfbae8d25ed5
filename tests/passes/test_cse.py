"""Values that are computed twice are computed once, unless chance or a message would tell."""

import numpy
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.passes import cse
from oarlock.registry.catalogue import standard

FEED = {"x": numpy.linspace(-1.0, 1.0, 6).reshape(2, 3)}


def data(name: str = "x", **options: object) -> ol.Var:
    return ol.layer.data(name, shape=[3], dtype="float64", **options)


def test_equal_ops_are_computed_once():
    with ol.Program() as program:
        x = data()
        y = ol.op.multiply(ol.op.tanh(x) * 2.0, ol.op.tanh(x) + 2.0)
    lines, applied = rewritten(program, [y], "cse")
    assert applied == {"cse": 2}
    assert lines == [
        "tanh_0: float64[n, 3] = tanh(x=x)",
        "full_0: float64[] = full(dtype=float64, shape=shape[], value=2.0)",
        "multiply_0: float64[n, 3] = multiply(x=tanh_0, y=full_0)",
        "add_0: float64[n, 3] = add(x=tanh_0, y=full_0)",
        "multiply_1: float64[n, 3] = multiply(x=multiply_0, y=add_0)",
    ]
    require_same_values(program, FEED, [y], "cse")


def test_a_block_reads_what_was_computed_before_it_and_what_follows_a_block_does_not_read_what_was_computed_inside():
    with ol.Program() as program:
        x = data(batch="t")
        w = data("w", batch=None)
        before = ol.op.tanh(w)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            rnn.output(step * ol.op.tanh(w) + ol.op.exp(w))
        y = rnn() + before + ol.op.exp(w)
    lines, applied = rewritten(program, [y], "cse")
    assert applied == {"cse": 1}
    assert [line.partition(" = ")[2] for line in lines if "tanh" in line.partition(" = ")[2] and "=w" in line] == ["tanh(x=w)"]
    assert sum("exp(x=w)" in line for line in lines) == 2
    assert "free=[tanh_0, w]" in next(line for line in lines if "recurrent(" in line)
    require_same_values(program, {**FEED, "w": numpy.ones(3)}, [y], "cse")


def test_what_is_fetched_is_computed_under_its_own_name():
    with ol.Program() as program:
        x = data()
        one, other = ol.op.tanh(x), ol.op.tanh(x)
    assert rewritten(program, [one, other], "cse") == (
        ["tanh_0: float64[n, 3] = tanh(x=x)", "tanh_1: float64[n, 3] = tanh(x=x)"],
        {"cse": 0},
    )


def test_what_differs_in_an_attribute_is_another_computation():
    with ol.Program() as program:
        x = data()
        zero, negative_zero = (ol.op.full(shape=(), value=value, dtype="float64") for value in (0.0, -0.0))
        y = ol.op.divide(x, zero) + ol.op.divide(x, negative_zero)
        z = ol.op.reduce_sum(x, axis=0, keepdim=False) + ol.op.reduce_sum(x, axis=0, keepdim=True)
    assert rewritten(program, [y, z], "cse")[1] == {"cse": 0}


def test_random_ops_are_never_shared():
    with ol.Program(seed=1) as program:
        x = data()
        y = ol.layer.dropout(x, rate=0.5) - ol.layer.dropout(x, rate=0.5)
    executor, scope = ol.Executor(passes=("cse",)), ol.Scope()
    (value,) = executor.run(program, {"x": numpy.ones((50, 3))}, [y], scope=scope, training=True)
    assert rewritten(program, [y], "cse")[1] == {"cse": 0}
    assert value.any()


def test_a_stack_returned_twice_is_returned_once():
    with ol.Program() as program:
        x = data(batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            rnn.output(ol.op.tanh(step))
            rnn.output(ol.op.tanh(step))
        one, other = rnn()
        y = one * other
    lines, applied = rewritten(program, [y], "cse")
    assert applied == {"cse": 2}
    assert "block rnn_0.body(x.step_0: float64[3]) -> (tanh_0) {" in lines
    require_same_values(program, FEED, [y], "cse")


def test_a_sum_over_the_steps_is_added_up_once():
    with ol.Program() as program:
        x = data(batch="t")
        b, c = data("b", batch=None), data("c", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(x) + b + c))
        db, dc = ol.gradients([ol.op.reduce_sum(rnn())], [b, c])
        y = db * dc
    lines, applied = rewritten(program, [y], "cse")
    assert applied == {"cse": 1}
    (loop,) = (line for line in lines if "recurrent(" in line and "@GRAD" in line.partition(" = ")[0])
    assert loop.partition(" = ")[0].count("float64[3]") == 1
    require_same_values(program, {**FEED, "b": numpy.ones(3), "c": numpy.ones(3)}, [y], "cse")


def test_a_name_that_is_hidden_is_not_read():
    with ol.Program() as written:
        x = data(batch="t")
        w = data("w", batch=None)
        outer = ol.op.exp(w)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(x)) + ol.op.exp(w))
        y = rnn() + outer
    program = ol.parse_program(written.to_text(source=False).replace("tanh_0", "exp_0"))
    assert rewritten(program, [program.main.var(y.name)], "cse")[1] == {"cse": 0}
    assert rewritten(written, [y], "cse")[1] == {"cse": 1}


def test_sharing_looks_at_each_op_once(monkeypatch):
    structure, calls = cse._structure, []
    monkeypatch.setattr(cse, "_structure", lambda op: calls.append(op) or structure(op))
    with ol.Program() as program:
        y = data()
        for _ in range(200):
            y = ol.op.tanh(y) + ol.op.tanh(y)
    assert cse.cse(program, standard) == 200
    assert len(calls) == 600

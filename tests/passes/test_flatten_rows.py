"""Products of rows in three dimensions, and what lies between them, are computed in two."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.passes.flatten_rows import flatten_rows
from oarlock.passes.pipeline import PASSES
from oarlock.registry import Catalogue, operator, standard

op = ol.op
DRAW = numpy.random.default_rng(3)
X = DRAW.normal(size=(2, 3, 4))


def data(name: str = "x", shape: tuple = ("t", 4), batch: str | None = "n") -> ol.Var:
    return ol.layer.data(name, list(shape), dtype="float64", batch=batch)


def weight(name: str, rows: int, columns: int) -> ol.Var:
    return ol.layer.create_parameter([rows, columns], name=name, dtype="float64")


def test_products_and_what_lies_between_them_compute_on_one_matrix():
    with ol.Program(seed=1) as program:
        x = data(shape=(3, 4))
        hidden = op.gelu(op.linear(x, weight("w", 4, 5), op.reshape(weight("b", 1, 5), shape=(5,))))
        y = op.linear(hidden, weight("v", 5, 2))
    lines, applied = rewritten(program, [y], "flatten_rows")
    assert applied == {"flatten_rows": 3}
    assert [line for line in lines if not line.startswith("parameter ")][1:] == [
        "x@ROWS_0: float64[3*n, 4] = reshape(x=x, shape=shape[3*n, 4])",
        "linear_0@ROWS_0: float64[3*n, 5] = linear(x=x@ROWS_0, w=w, bias=reshape_0)",
        "gelu_0@ROWS_0: float64[3*n, 5] = gelu(x=linear_0@ROWS_0, approximate=false)",
        "linear_1@ROWS_0: float64[3*n, 2] = linear(x=gelu_0@ROWS_0, w=v)",
        "linear_1: float64[n, 3, 2] = reshape(x=linear_1@ROWS_0, shape=shape[n, 3, 2])",
    ]
    require_same_values(program, {"x": X}, [y], "flatten_rows")


def test_shapes_that_a_user_has_written_go():
    with ol.Program(seed=1) as program:
        x = data(shape=(3, 4))
        rows = op.linear(op.reshape(op.layer_norm(x), shape=(-1, 4)), weight("w", 4, 5))
        y = op.linear(op.reshape(op.gelu(op.reshape(rows, shape=("n", 3, 5))), shape=(-1, 5)), weight("v", 5, 2))
    lines, _ = rewritten(program, [y], "flatten_rows", "canonicalize")
    types = [line.partition(" = ")[2].partition("(")[0] for line in lines if not line.startswith("parameter ")]
    assert types == ["layer_norm", "reshape", "linear", "gelu", "linear"]
    require_same_values(program, {"x": X}, [y], "flatten_rows", "canonicalize")


def trained():
    """A training program with two residual blocks, whose rows stand in three dimensions."""
    with ol.Program(seed=1) as program:
        h = x = data(shape=(3, 4))
        for number in range(2):
            normal = ol.layer.rms_norm(h) if number else ol.layer.layer_norm(h)
            h = h + op.linear(op.gelu(op.linear(normal, weight(f"w{number}", 4, 6))), weight(f"v{number}", 6, 4))
        cost = op.mean(op.square(h - x * 2.0))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost


def test_a_training_step_computes_its_gradients_in_two_dimensions_too_and_to_the_same_values():
    program, cost = trained()
    lines, applied = rewritten(program, [cost], *PASSES)
    assert applied["flatten_rows"] >= 20
    products = [line for line in lines if any(f" = {type}(" in line for type in ("linear", "linear_dx", "addmm", "addmm_nt"))]
    assert len(products) >= 6
    assert all("[3*n, " in line for line in products)
    found = []
    for passes in ((), ("flatten_rows",), tuple(PASSES)):
        scope = ol.init(program, ol.Scope())
        step = ol.Executor(passes=passes).prepare(program, [cost], scope=scope)
        losses = [float(step({"x": X})[0]) for _ in range(3)]
        found.append((losses, {var.name: numpy.asarray(scope[var.name]) for var in program.persistables()}))
    for losses, state in found[1:]:
        numpy.testing.assert_allclose(losses, found[0][0], rtol=1e-12)
        for name, value in state.items():
            numpy.testing.assert_allclose(value, found[0][1][name], rtol=1e-11, atol=1e-13)


def test_what_the_loop_inside_reads_is_given_to_it_as_it_was():
    with ol.Program(seed=1) as program:
        x = data(shape=(3, 4))
        h = op.linear(op.gelu(op.linear(op.gelu(op.linear(x, weight("w", 4, 4))), weight("v", 4, 4))), weight("u", 4, 4))
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(h)
            rnn.output(op.tanh(step) + op.reduce_sum(h))
        y = rnn()
    assert isinstance(y, ol.Var)
    lines, applied = rewritten(program, [y], "flatten_rows")
    assert applied == {"flatten_rows": 5}
    assert sum(" = reshape(" in line for line in lines) == 2
    require_same_values(program, {"x": X}, [y], "flatten_rows")


@pytest.mark.parametrize(
    "expression",
    [
        lambda x: op.linear(x, weight("w", 4, 4)),  # two shapes for the call that is spared
        lambda x: op.linear(x, weight("w", 4, 4), op.reshape(weight("b", 1, 4), shape=(4,))),  # and for both calls of this one
        lambda x: op.softmax(op.linear(x, weight("w", 4, 4), op.reshape(weight("b", 1, 4), shape=(4,)))),
        lambda x: op.gelu(op.tanh(x)),
        lambda x: op.softmax(op.linear(op.softmax(op.linear(x, weight("w", 4, 4))), weight("v", 4, 4))),
        lambda x: op.linear(op.reshape(x, shape=(-1, 4)), weight("w", 4, 4)),
    ],
)
def test_what_would_not_be_fewer_calls_stays(expression):
    with ol.Program(seed=1) as program:
        y = expression(data(shape=(3, 4)))
    assert rewritten(program, [y], "flatten_rows") == (rewritten(program, [y])[0], {"flatten_rows": 0})


def test_rows_in_two_unknown_dimensions_stay():
    with ol.Program(seed=1) as program:
        y = op.linear(op.gelu(op.linear(op.gelu(op.linear(data(), weight("w", 4, 4))), weight("v", 4, 4))), weight("u", 4, 4))
    assert rewritten(program, [y], "flatten_rows")[1] == {"flatten_rows": 0}


@pytest.mark.parametrize("shape", [(0, 4), (1, 4)])
def test_rows_of_no_elements_have_their_shape(shape):
    with ol.Program(seed=1) as program:
        h = data(shape=shape)
        for name in "wvu":
            h = op.gelu(op.linear(h, weight(name, shape[1], shape[1])))
    require_same_values(program, {"x": numpy.zeros((2, *shape))}, [h], "flatten_rows")
    require_same_values(program, {"x": numpy.zeros((0, *shape))}, [h], "flatten_rows")
    rewritten(program, [h], *PASSES)


def test_it_applies_where_there_are_no_gradients():
    program, cost = trained()
    predicting = ol.prune(program, [cost])
    assert flatten_rows(predicting, standard.forward_only()) > 0


def test_an_operator_that_is_told_an_axis_stays():
    @operator("x: float[*b k] -> y: float[*b k]")
    def flipped_rows(x, *, axis: int):
        return x.flip(axis)

    try:
        with ol.Program(seed=1) as program:
            h = data(shape=(3, 4))
            for name in "wvu":
                h = flipped_rows(op.gelu(op.linear(op.gelu(op.linear(h, weight(name, 4, 4))), weight(f"{name}2", 4, 4))), axis=2)
        require_same_values(program, {"x": X}, [h], "flatten_rows")
    finally:
        standard.operators.pop("flipped_rows", None)


def test_operators_of_somebody_else_stay():
    catalogue = Catalogue()

    @operator("x: float[*b k], w: float[k n] -> out: float[*b n]", catalogue=catalogue)
    def linear(x, w):
        return x @ w + 1

    program, _ = trained()
    before = program.to_text()
    assert flatten_rows(program, catalogue) == 0
    assert program.to_text() == before

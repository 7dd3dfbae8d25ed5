"""A result computed from constants is a constant."""

import numpy
from rewritten import require_same_values, rewritten

import oarlock as ol


def constant(value: float, dtype: str = "float64", shape: tuple[int, ...] = ()) -> ol.Var:
    return ol.op.full(shape=shape, value=value, dtype=dtype)


def test_what_constants_give_is_a_constant():
    with ol.Program() as program:
        condition = ol.op.less(constant(0, "int64"), constant(50, "int64"))
        third = ol.op.divide(constant(1.0, "float32"), constant(3.0, "float32"))
        chosen = ol.op.cast(condition, dtype="float32") + third
        rows = ol.op.split(ol.op.exp(constant(1.0, shape=(2, 3))), sections=2)[1]
        y, z = ol.op.tanh(chosen), ol.op.tanh(rows)
    lines, applied = rewritten(program, [chosen, z], "constant_folding")
    assert applied == {"constant_folding": 5}
    assert lines[-2:] == [
        "split_0.1@VALUE_0: float64[1, 3] = full(dtype=float64, shape=shape[1, 3], value=2.718281828459045)",
        "tanh_1: float64[1, 3] = tanh(x=split_0.1@VALUE_0)",
    ]
    require_same_values(program, {}, [condition, third, chosen, rows, y, z], "constant_folding")


def test_a_loop_begins_with_what_is_known_before_it():
    with ol.Program() as program:
        count, limit = constant(0, "int64"), constant(5, "int64")
        loop = ol.while_loop(ol.op.less(count, limit))
        with loop.block():
            loop.carry(count, count + ol.op.add(constant(1, "int64"), constant(1, "int64")))
            loop.update_condition(count + 2 < limit)
        trips = loop()
    lines, applied = rewritten(program, [trips], "constant_folding")
    assert applied == {"constant_folding": 2}
    assert "less_0@SCALAR_0: bool[] = full(dtype=bool, shape=shape[], value=1.0)" in lines
    require_same_values(program, {}, [trips], "constant_folding")


def test_a_gradient_that_begins_as_one_is_a_constant():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        (gradient,) = ol.gradients([ol.op.reduce_sum(ol.op.tanh(x))], [x])
    lines, applied = rewritten(program, [gradient], "constant_folding")
    assert applied == {"constant_folding": 1}
    assert not any("full_like" in line for line in lines)
    assert any(line.endswith("= full(dtype=float64, shape=shape[], value=1.0)") for line in lines)
    require_same_values(program, {"x": numpy.ones((2, 3))}, [gradient], "constant_folding")


def test_what_is_no_finite_number_repeated_stays():
    with ol.Program() as program:
        infinite = ol.op.divide(constant(1.0), constant(0.0)) + 1.0
        large = ol.op.exp(constant(1.0, shape=(100, 100))) + 1.0
        exact = ol.op.add(constant(2.0**53, "int64"), constant(1, "int64")) + 0
        joined = ol.op.concat([constant(1.0, shape=(1,)), constant(2.0, shape=(1,))]) + 1.0
    fetched = [infinite, large, exact, joined]
    assert rewritten(program, fetched, "constant_folding")[1] == {"constant_folding": 0}
    require_same_values(program, {}, fetched, "constant_folding")


def test_what_may_refuse_its_values_does_so_where_it_stands():
    with ol.Program() as program:
        quotient = ol.op.floor_divide(constant(1, "int64"), constant(0, "int64"))
        y = quotient + 1
    lines, applied = rewritten(program, [y], "constant_folding")
    assert applied == {"constant_folding": 0}
    assert any("floor_divide" in line for line in lines)


def test_random_numbers_of_constants_stay():
    with ol.Program(seed=1) as program:
        y = ol.layer.dropout(constant(1.0, shape=(40,)), rate=0.5) + 0.0
    assert rewritten(program, [y], "constant_folding")[1] == {"constant_folding": 0}


def test_one_element_that_lies_at_a_distance_from_the_next_is_a_constant():
    """Such is a diagonal of one place: a tensor that PyTorch calls contiguous, with a step of two."""
    with ol.Program() as program:
        y = ol.op.neg(ol.op.diagonal(constant(3, "int64", (1, 1)), offset=0, axes=(0, 1)))
    lines, applied = rewritten(program, [y], "constant_folding")
    assert applied == {"constant_folding": 1}
    assert lines[-2:] == [
        "diagonal_0@VALUE_0: int64[1] = full(dtype=int64, shape=shape[1], value=3.0)",
        "neg_0: int64[1] = neg(x=diagonal_0@VALUE_0)",
    ]
    require_same_values(program, {}, [y], "constant_folding")

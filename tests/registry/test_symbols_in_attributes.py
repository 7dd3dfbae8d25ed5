"""Symbols in attributes: the inputs of the op tell their numbers, to the interpreter, to a plan, and to a limit."""

import numpy as np
import pytest

import oarlock as ol
from oarlock.registry import parse_program
from oarlock.runtime.budget import RunLimits

FEED = {"x": np.arange(24.0).reshape(2, 3, 4), "y": np.ones((3, 5))}


def program_of_symbols():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", 4], dtype="float64")
        y = ol.layer.data("y", shape=["t", 5], dtype="float64", batch=None)
        program.targets["split"] = ol.op.reshape(x, shape=("t", "n", 2, -1))
        joined = ol.op.reshape(x, shape=(-1, 4))
        program.targets["back"] = ol.op.view(joined, [x], shape=("n", "t", 4))
        program.targets["row"] = ol.op.broadcast_to(ol.op.full(shape=(), value=2.0, dtype="float64"), [y, x], shape=("t", "2*n"))
        program.targets["numbers"] = ol.op.arange([y], start=(1,), stop=("t",), step=1)
        program.targets["part"] = ol.op.narrow(y, [x], axis=1, start=("n",), length=("n",))
    return program


def require_values(program, **options):
    split, back, row, numbers, part = ol.Executor(**options).run(program, FEED, list(program.targets), scope=ol.Scope())
    assert np.array_equal(split, FEED["x"].reshape(3, 2, 2, 2))
    assert np.array_equal(back, FEED["x"])
    assert np.array_equal(row, np.full((3, 4), 2.0))
    assert numbers.tolist() == [1, 2]
    assert np.array_equal(part, FEED["y"][:, 2:4])


@pytest.mark.parametrize("options", [{}, {"interpret": True, "check": True}, {"limits": RunLimits()}, {"passes": ()}])
def test_the_inputs_tell_the_numbers(options):
    program = program_of_symbols()
    assert [var.shape for var in program.targets.values()] == [("t", "n", 2, 2), ("n", "t", 4), ("t", "2*n"), ("t-1",), ("t", "n")]
    require_values(program, **options)


def test_the_file_and_the_text_keep_them():
    program = program_of_symbols()
    for copy in (ol.Program.from_bytes(program.to_bytes()), parse_program(program.to_text())):
        require_values(copy)


def test_pruning_keeps_what_tells_a_number():
    program = program_of_symbols()
    pruned = ol.prune(program, {"numbers": program.targets["numbers"]})
    assert [var.name for var in pruned.main.inputs] == ["y"]
    assert ol.Executor().run(pruned, {"y": FEED["y"]}, ["numbers"], scope=ol.Scope())[0].tolist() == [1, 2]


def test_a_reshape_of_a_reshape_is_still_told():
    """Two reshapes become one, but not where only the first result tells the sizes."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["8*t"], dtype="float64")
        once = ol.op.reshape(x, shape=("n", -1))
        y = ol.op.reshape(ol.op.reshape(once, shape=("8*t", "n")), shape=("t", 8, "n"))
    (found,) = ol.Executor().run(program, {"x": np.arange(48.0).reshape(3, 16)}, [y], scope=ol.Scope())
    assert np.array_equal(found, np.arange(48.0).reshape(2, 8, 3))


def test_a_symbol_that_no_input_tells_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["2*m*n"], dtype="float64", batch=None)
        for call, message in {
            lambda: ol.op.reshape(x, shape=("n", "m", 2)): "reshape: no input determines n and m of [n, m, 2]",
            lambda: ol.op.reshape(x, shape=("n", -1)): "reshape: no input determines n of [n, -1]",
            lambda: ol.op.broadcast_to(x, [x], shape=("n", "2*m*n")): "broadcast_to: no input determines n of [n, 2*m*n]; "
            "pass variables of that size as like=[...]",
        }.items():
            with pytest.raises(ol.ShapeError) as refused:
                call()
            assert refused.value.message == message
    assert program.main.ops == []


def test_heads_that_were_just_moved_are_moved_back_by_nobody():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["t", 8])
        by_head = [ol.op.transpose(ol.op.reshape(ol.layer.fc(x, 8), shape=("n", "t", 2, 4)), axes=(0, 2, 1, 3)) for _ in range(3)]
        y = ol.op.attention_by_head(*by_head)
        y = ol.layer.fc(ol.op.reshape(ol.op.transpose(y, axes=(0, 2, 1, 3)), shape=("n", "t", 8)), 8)
    text = ol.Executor().plan(program, [y]).text
    assert "scaled_dot_product_attention" in text
    assert "transpose" not in text
    assert "reshape" not in text

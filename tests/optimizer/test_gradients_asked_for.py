"""Gradients and updates are asked for with variables, several or one, and nothing else."""

from collections.abc import Callable

import pytest

import oarlock as ol


@pytest.fixture
def written() -> tuple[ol.Program, ol.Var, list[ol.Var]]:
    with ol.Program() as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", [3]), 2, name="f"))
    return program, cost, program.parameters()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda cost, _: ol.gradients([cost], ["f.w"]), "inputs: str 'f.w' is no variable"),
        (lambda cost, _: ol.gradients("cost", cost), "targets: str 'cost' is no variable"),
        (lambda cost, some: ol.gradients(cost, some, [1.0]), "target_gradients: float 1.0 is no variable"),
        (lambda cost, _: ol.append_backward([cost]), "the cost: list [<Var main/mean_0 float32[]>] is no variable"),
        (lambda cost, _: ol.append_backward(cost, 3), "parameters: int 3 is no variable"),
        (lambda _, some: ol.optimizer.SGD().minimize("cost", some), "the cost: str 'cost' is no variable"),
        (lambda cost, _: ol.optimizer.SGD().minimize(cost, "f.w"), "parameters: str 'f.w' is no variable"),
        (lambda _, some: ol.optimizer.SGD().apply(some), "apply: expected pairs of a parameter and its gradient, not Var float32[3, 2]"),
        (lambda cost, _: ol.optimizer.SGD().apply(cost), "apply: expected pairs of a parameter and its gradient, not Var float32[]"),
        (lambda _, some: ol.optimizer.SGD().apply([(some[0], None)]),
         "apply: expected pairs of a parameter and its gradient, not tuple (<Var main/f.w float32[3, 2]>, None)"),
    ],
)  # fmt: skip
def test_what_is_no_variable_is_refused_and_nothing_is_written(written, ask: Callable, message: str):
    program, cost, parameters = written
    before = program.to_bytes()
    with program, pytest.raises(ol.ArgumentError) as raised:
        ask(cost, parameters)
    assert raised.value.message == message
    assert program.to_bytes() == before


def test_a_name_is_told_how_to_become_a_variable(written):
    program, cost, _ = written
    with program, pytest.raises(ol.ArgumentError) as raised:
        ol.optimizer.SGD().minimize(cost, ["f.w"])
    assert raised.value.hint == 'ol.get_variable("f.w") is the variable of that name'


def test_no_parameters_are_told_from_a_cost_that_has_none(written):
    program, cost, _ = written
    with program, pytest.raises(ol.ProgramError) as raised:
        ol.optimizer.SGD().minimize(cost, [])
    assert raised.value.message == "parameters is empty: there is nothing to update"


def test_one_parameter_stands_for_a_list_and_each_is_updated_once(written):
    program, cost, (w, b) = written
    with program:
        assert [parameter.name for parameter, _ in ol.append_backward(cost, b)] == ["f.b"]
        pairs = ol.optimizer.Adam().minimize(cost, (each for each in (w, b, w)))
    assert [parameter.name for parameter, _ in pairs] == ["f.w", "f.b"]

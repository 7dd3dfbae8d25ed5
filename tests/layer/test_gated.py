"""LSTM and GRU layers: against PyTorch's, over padded and over ragged sequences, forwards and backwards."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD, LAYERS

import oarlock as ol

D, H = 3, 4
GATES = {"lstm": 4, "gru": 3}


def weights_of(scope: ol.Scope, kind: str) -> list[torch.Tensor]:
    return [scope[f"{kind}_0.{name}"].clone().requires_grad_() for name in "wub"]


def theirs(kind: str, weights: list[torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Outputs, then the final states, of PyTorch's layer on [t, n, D]."""
    module = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(D, H).double()
    w, u, b = weights
    named = {"weight_ih_l0": w.T, "weight_hh_l0": u.T, "bias_ih_l0": b, "bias_hh_l0": torch.zeros_like(b)}
    outputs, final = torch.func.functional_call(module, named, (x,))
    return (outputs, *(state[0] for state in (final if kind == "lstm" else [final])))


def require_close(actual: object, expected: torch.Tensor, tolerance: tuple[float, float] = LAYERS) -> None:
    torch.testing.assert_close(torch.as_tensor(actual), expected.detach(), rtol=tolerance[0], atol=tolerance[1])


def randomized(program: ol.Program) -> ol.Scope:
    scope = ol.init(program, ol.Scope())
    for number, var in enumerate(program.parameters()):
        scope.set(var.name, numpy.random.default_rng(number).standard_normal(var.shape))
    return scope


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_gated_layer_and_its_gradients_are_those_of_pytorch(kind, reverse):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", D], dtype="float64", batch="t")
        results = getattr(ol.layer, kind)(x, H, reverse=reverse)
        parameters = list(program.parameters())
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(result)) for result in results], parameters)
    assert {var.name: var.shape for var in parameters} == {
        f"{kind}_0.w": (D, GATES[kind] * H), f"{kind}_0.u": (H, GATES[kind] * H), f"{kind}_0.b": (GATES[kind] * H,)
    }  # fmt: skip
    assert [result.shape for result in results] == [("t", "n", H), *[("n", H)] * (len(results) - 1)]
    scope = randomized(program)
    values = numpy.random.default_rng(9).standard_normal((6, 2, D))
    given = torch.from_numpy(values)
    weights = weights_of(scope, kind)
    expected = list(theirs(kind, weights, given.flip(0) if reverse else given))
    expected[0] = expected[0].flip(0) if reverse else expected[0]
    torch.stack([result.square().sum() for result in expected]).sum().backward()
    found = ol.Executor().run(program, {"x": values}, [*results, *gradients], scope=scope)
    for actual, result in zip(found, expected, strict=False):
        require_close(actual, result)
    for actual, weight in zip(found[len(results) :], weights, strict=True):
        require_close(actual, weight.grad, AUTOGRAD)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_over_ragged_sequences_each_is_as_if_it_were_alone(kind):
    with ol.Program() as program:
        results = getattr(ol.layer, kind)(ol.layer.data("x", shape=[D], dtype="float64", ragged=1), H)
    scope = randomized(program)
    rows = [numpy.random.default_rng(length).standard_normal((length, D)) for length in (2, 5, 1)]
    outputs, *finals = ol.Executor().run(program, {"x": rows}, list(results), scope=scope)
    weights = weights_of(scope, kind)
    alone = [theirs(kind, weights, torch.from_numpy(row)[:, None]) for row in rows]
    require_close(outputs, torch.cat([item[0][:, 0] for item in alone]))
    for number, final in enumerate(finals):
        require_close(final, torch.cat([item[1 + number] for item in alone]))


def test_states_start_as_is_said():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", D], dtype="float64", batch="t")
        h, c = (ol.layer.data(name, shape=[H], dtype="float64") for name in "hc")
        results = [ol.layer.lstm(x, H, init=(h, c))[2], ol.layer.gru(x, H, init=h)[1]]
    feed = {"x": numpy.zeros((0, 2, D)), "h": numpy.full((2, H), 2.0), "c": numpy.full((2, H), 3.0)}
    last_c, last_h = ol.Executor().run(program, feed, results, scope=ol.init(program, ol.Scope()))
    assert (last_c == 3.0).all()
    assert (last_h == 2.0).all()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_is_no_sequence_of_rows_is_refused_and_declares_nothing(kind):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[D])
        with pytest.raises(ol.ShapeError) as raised:
            getattr(ol.layer, kind)(x, H)
    assert raised.value.message == f'{kind}: "x" is not a sequence of rows'
    assert raised.value.contract == "float[t n d], the steps first, or ragged, float[t d]"
    assert program.persistables() == []


# Zeros to start with, for any recurrence


def test_a_memory_of_zeros_has_a_row_for_each_row_of_the_step_input():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], dtype="float64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            total = rnn.memory(shape=[2])
            rnn.update_memory(total, rnn.previous_memory(total) + step)
        rnn()
        last = rnn.final_memory(total)
    assert last.type_text == "float64[n, 2]"
    values = numpy.arange(12.0).reshape(3, 2, 2)
    assert numpy.array_equal(ol.Executor().run(program, {"x": values}, [last], scope=ol.Scope())[0], values.sum(0))


def test_zeros_without_rows_to_count_are_refused():
    with ol.Program():
        x = ol.layer.data("x", shape=["n", 2], batch="t")
        rnn = ol.rnn()
        with pytest.raises(ol.ProgramError) as raised, rnn.step():
            rnn.memory(shape=[2])
        assert raised.value.message == "rnn.memory: zeros have the rows of the first step input, but there is no step input with rows"
        with pytest.raises(ol.ArgumentError) as refused, rnn.step():
            rnn.step_input(x)
            rnn.memory(init=x, shape=[2])
        assert refused.value.message == "rnn.memory: pass either init or shape"


def test_a_step_that_is_discarded_takes_its_zeros_with_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], batch="t")
        rnn = ol.rnn()
        with pytest.raises(RuntimeError), rnn.step():
            rnn.step_input(x)
            rnn.memory(shape=[2])
            raise RuntimeError
    assert program.main.ops == []

"""Recurrent layers against PyTorch's: in both directions, in stacks, on padded batches and on ragged sequences; and their cells."""

import numpy
import pytest
import torch
from beside_torch import require_like, transposed
from tolerances import LAYERS

import oarlock as ol

D, H, N, T = 3, 4, 3, 5
LENGTHS = numpy.array([5, 2, 3])
MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "simple_rnn": torch.nn.RNN}


def values(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape)


def module_of(kind: str, layers: int, bidirectional: bool, **how) -> torch.nn.Module:
    torch.manual_seed(0)
    module = MODULES[kind](D, H, num_layers=layers, bidirectional=bidirectional, **how)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


def copied(kind: str, layers: int, bidirectional: bool) -> dict:
    """The parameters of ours by their names in PyTorch."""
    found = {}
    for layer in range(layers):
        base = f"{kind}_0" if layers == 1 else f"{kind}_0.{layer}"
        for prefix, suffix in [(base, "")] + [(f"{base}.reverse", "_reverse")] * bidirectional:
            found |= {
                f"{prefix}.w": (f"weight_ih_l{layer}{suffix}", transposed),
                f"{prefix}.u": (f"weight_hh_l{layer}{suffix}", transposed),
                f"{prefix}.b": f"bias_ih_l{layer}{suffix}",
                f"{prefix}.v": f"bias_hh_l{layer}{suffix}",
            }
    return found


def of_padded(module: torch.nn.Module, kind: str, lengths: torch.Tensor):
    """The module over a packed sequence: outputs padded with zeros, then the last states, with the rows where they were."""

    def call(x, *ignored):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False, batch_first=module.batch_first)
        outputs, states = module(packed)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, batch_first=module.batch_first, total_length=T)
        return [y, *(states if kind == "lstm" else [states])]

    return call


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["lstm", "gru", "simple_rnn"])
def test_on_padded_batches_a_stack_in_both_directions_is_that_of_pytorch(kind, layers, bidirectional):
    module = module_of(kind, layers, bidirectional)

    def ours(x, lengths):
        y, *states = getattr(ol.layer, kind)(x, H, lengths=lengths, layers=layers, bidirectional=bidirectional, recurrent_bias=True)
        single = layers == 1 and not bidirectional
        return [y, *(ol.op.unsqueeze(state, 0) if single else state for state in states)]

    x = values(T, N, D)
    require_like(ours, module, [x, LENGTHS], copied(kind, layers, bidirectional), call=of_padded(module, kind, torch.from_numpy(LENGTHS)))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_that_are_given_are_those_of_all_layers_and_the_batch_may_come_first(kind):
    module = module_of(kind, 2, True, batch_first=True)
    states = [values(4, N, H, seed=1), values(4, N, H, seed=2)][: 2 if kind == "lstm" else 1]

    def ours(x, *init):
        y, *last = getattr(ol.layer, kind)(
            x, H, layers=2, bidirectional=True, batch_first=True, recurrent_bias=True, init=init if kind == "lstm" else init[0]
        )
        return [y, *last]

    def theirs(x, *init):
        y, last = module(x, init if kind == "lstm" else init[0])
        return [y, *(last if kind == "lstm" else [last])]

    require_like(ours, module, [values(N, T, D), *states], copied(kind, 2, True), call=theirs)


def test_a_simple_recurrence_may_rectify():
    module = module_of("simple_rnn", 1, False, nonlinearity="relu")
    require_like(
        lambda x: ol.layer.simple_rnn(x, H, act="relu", recurrent_bias=True)[0],
        module,
        [values(T, N, D)],
        copied("simple_rnn", 1, False),
        call=lambda x: module(x)[0],
    )


@pytest.mark.parametrize("kind", ["lstm", "gru", "simple_rnn"])
def test_ragged_sequences_give_what_padded_ones_give(kind):
    x = values(T, N, D)
    how = {"layers": 2, "bidirectional": True, "name": "layer"}
    with ol.Program() as program:
        ragged = getattr(ol.layer, kind)(ol.layer.data("x", shape=[D], dtype="float64", ragged=1), H, **how)
        padded = ol.layer.data("padded", shape=[T, "m", D], dtype="float64", batch=None)
        lengths = ol.layer.data("lengths", shape=["m"], dtype="int64", batch=None)
        results = getattr(ol.layer, kind)(padded, H, lengths=lengths, **how)
    feed = {"x": [x[:length, row] for row, length in enumerate(LENGTHS)], "padded": x, "lengths": LENGTHS}
    scope = ol.init(program, ol.Scope())
    found = ol.Executor().run(program, feed, [*ragged, *results], scope=scope)
    outputs, last = found[: len(ragged)], found[len(ragged) :]
    rows = numpy.concatenate([last[0][:length, row] for row, length in enumerate(LENGTHS)])
    numpy.testing.assert_allclose(outputs[0], rows, rtol=LAYERS[0], atol=LAYERS[1])
    for actual, expected in zip(outputs[1:], last[1:], strict=True):
        numpy.testing.assert_allclose(actual, expected, rtol=LAYERS[0], atol=LAYERS[1])


def test_elements_are_dropped_between_layers_alone():
    def outputs(layers: int, rate: float, training: bool) -> numpy.ndarray:
        with ol.Program() as program:
            y, _ = ol.layer.gru(ol.layer.data("x", shape=["n", D], batch="t"), H, layers=layers, dropout=rate, name="g")
        feed = {"x": values(T, N, D).astype("float32")}
        return ol.Executor().run(program, feed, [y], scope=ol.init(program, ol.Scope()), training=training)[0]

    assert numpy.array_equal(outputs(1, 0.5, True), outputs(1, 0.0, False))
    assert numpy.array_equal(outputs(2, 0.5, False), outputs(2, 0.0, False))
    assert not numpy.allclose(outputs(2, 0.5, True), outputs(2, 0.0, True))


@pytest.mark.parametrize("kind", ["lstm_cell", "gru_cell", "rnn_cell"])
def test_a_cell_is_that_of_pytorch(kind):
    torch.manual_seed(0)
    module = {"lstm_cell": torch.nn.LSTMCell, "gru_cell": torch.nn.GRUCell, "rnn_cell": torch.nn.RNNCell}[kind](D, H)
    states = [values(N, H, seed=1), values(N, H, seed=2)][: 2 if kind == "lstm_cell" else 1]
    names = {
        f"{kind}_0.w": ("weight_ih", transposed),
        f"{kind}_0.u": ("weight_hh", transposed),
        f"{kind}_0.b": "bias_ih",
        f"{kind}_0.v": "bias_hh",
    }
    require_like(
        lambda x, *states: getattr(ol.layer, kind)(x, *states, recurrent_bias=True),
        module,
        [values(N, D), *states],
        names,
        call=lambda x, *states: module(x, states if kind == "lstm_cell" else states[0]),
    )


def test_what_makes_no_sense_is_refused_and_declares_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", D], batch="t")
        ragged = ol.layer.data("r", shape=[D], ragged=1)
        lengths = ol.layer.data("lengths", shape=[], dtype="int64")
        other = ol.layer.data("other", shape=["m"], dtype="int64", batch=None)
        for layer, error, message in (
            (lambda: ol.layer.lstm(x, H, lengths=x), ol.DTypeError, "lstm: lengths must be int64, not float32"),
            (lambda: ol.layer.lstm(x, H, lengths=other), ol.ShapeError, "lstm: lengths must be one per row, int64[n], not int64[m]"),
            (
                lambda: ol.layer.gru(ragged, H, lengths=lengths), ol.ArgumentError,
                "gru: a ragged input has its own lengths and no batch dimension",
            ),
            (lambda: ol.layer.simple_rnn(x, H, act="sine"), ol.ArgumentError, "simple_rnn: act must be 'tanh' or 'relu', not 'sine'"),
            (
                lambda: ol.layer.gru(x, H, bidirectional=True, reverse=True), ol.ArgumentError,
                "gru: bidirectional runs in both directions, so reverse cannot be used",
            ),
            (
                lambda: ol.layer.gru(x, H, layers=2, init=x), ol.ShapeError,
                "init must be a state for each of 2 recurrences, float[2 n size], not float32[t, n, 3]",
            ),
            (
                lambda: ol.layer.gru(x, H, layers=2, weight=ol.layer.ParameterOptions(name="w")), ol.ArgumentError,
                'gru: its parameters cannot all have the name "w"',
            ),
            (lambda: ol.layer.gru(x, H, layers=0), ol.ArgumentError, "gru: layers must be an integer >= 1, not 0"),
            (
                lambda: ol.layer.gru_cell(x, ol.layer.data("h", shape=[H])), ol.ShapeError,
                "gru_cell: each state must have a row for each row of the input",
            ),
        ):  # fmt: skip
            with pytest.raises(error) as raised:
                layer()
            assert raised.value.message == message
    assert program.persistables() == []
    assert program.main.ops == []


def test_an_lstm_may_project_what_it_gives():
    module = module_of("lstm", 2, True, proj_size=2)
    names = copied("lstm", 2, True)
    names |= {
        f"lstm_0.{layer}{ours}.p": (f"weight_hr_l{layer}{theirs}", transposed)
        for layer in (0, 1)
        for ours, theirs in (("", ""), (".reverse", "_reverse"))
    }
    require_like(
        lambda x, lengths: ol.layer.lstm(x, H, lengths=lengths, layers=2, bidirectional=True, projection=2, recurrent_bias=True),
        module, [values(T, N, D), LENGTHS], names, call=of_padded(module, "lstm", torch.from_numpy(LENGTHS)),
    )  # fmt: skip

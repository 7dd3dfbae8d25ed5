"""The axis along which workers divide each input."""

from types import SimpleNamespace

import numpy
import pytest
from thread_workers import ThreadWorkers, run_together

import oarlock as ol
from oarlock.passes import data_parallel
from oarlock.passes.parallel.input_rows import placements_of_inputs
from oarlock.passes.parallel.placement import Placement
from oarlock.training.together import shared_by

Inputs = dict[str, list]


def program_of(inputs: Inputs) -> ol.Program:
    with ol.Program() as program:
        for name, shape in inputs.items():
            ol.layer.data(name, shape, batch=None)
    return program


def axes_of(inputs: Inputs, rows: str | None = None) -> dict[str, int | None]:
    """The axis along which each input is divided; None of one that is the same on every worker."""

    def axis(placement: Placement) -> int | None:
        return placement.axis if placement.by_rows else None

    return {var.name: axis(placement) for var, placement in placements_of_inputs(program_of(inputs), rows).items()}


@pytest.mark.parametrize(
    ("inputs", "axes"),
    [
        ({"x": ["n", 3], "y": ["n"]}, {"x": 0, "y": 0}),
        ({"x": ["b", 3], "y": ["c"]}, {"x": 0, "y": 0}),
        ({"x": ["t", "n", 3], "y": ["n"]}, {"x": 1, "y": 0}),
        ({"x": ["n", "t", 3], "at": ["t"]}, {"x": 0, "at": None}),
        ({"x": ["t", "n", 3], "y": ["n"], "times": ["t", 2], "other": ["m"]}, {"x": 1, "y": 0, "times": None, "other": 0}),
        ({"x": [5, "n", 3]}, {"x": 1}),
        ({"x": [5, "n", 3], "y": ["n"], "w": [3]}, {"x": 1, "y": 0, "w": None}),
        ({"x": ["t", 3, "2*n"], "y": ["n"]}, {"x": 2, "y": 0}),
        ({"x": ["n", 3], "cuts": ["n+1"]}, {"x": 0, "cuts": None}),
    ],
)
def test_n_counts_rows_where_an_input_has_another_size_that_may(inputs, axes):
    assert axes_of(inputs) == axes


def test_rows_are_called_otherwise_when_the_caller_says_so():
    assert axes_of({"x": ["t", "b", 3], "y": ["b"]}, "b") == {"x": 1, "y": 0}
    assert axes_of({"x": ["b", "n", 3], "y": ["b"]}, "b") == {"x": 0, "y": 0}
    assert axes_of({"x": ["t", "n", 3], "y": ["n"]}, "t") == {"x": 0, "y": None}


@pytest.mark.parametrize(
    ("inputs", "message", "hint"),
    [
        (
            {"x": ["t", "b", 3], "y": ["b"]},
            '"x" has the sizes t and b, and each of them may count the rows that workers divide',
            'data_parallel(program, rows="b") says which; by default it is a size called n that leads an input',
        ),
        (
            {"x": ["t", "n", 3], "y": ["t", "n"]},
            '"x" has the sizes t and n, and each of them may count the rows that workers divide',
            'data_parallel(program, rows="n") says which; by default it is a size called n that leads an input',
        ),
        (
            {"x": ["n", "n"]},
            '"x" has the rows n along two axes, so workers cannot divide it',
            "call one of the sizes otherwise: what is not divided is the same on every worker",
        ),
    ],
)
def test_rows_that_are_not_clear_are_refused_by_the_name_of_the_input(inputs, message, hint):
    with pytest.raises(ol.ProgramError) as raised:
        data_parallel(program_of(inputs))
    assert (raised.value.message, raised.value.hint) == (message, hint)
    assert '"x"' in raised.value.given[0] if raised.value.given else False


@pytest.mark.parametrize("inputs", [{}, {"x": [3]}, {"x": ["2*n", 3]}, {"x": ["n+1"]}, {"x": [4, 3], "y": []}])
def test_a_program_in_which_no_size_counts_rows_is_refused(inputs):
    with pytest.raises(ol.ProgramError) as raised:
        data_parallel(program_of(inputs))
    assert raised.value.message == "no input of this program leads with rows, so workers have none of their own"


def test_training_deals_the_first_axis_of_the_data_and_refuses_rows_along_another():
    with pytest.raises(ol.ProgramError) as raised:
        shared_by(SimpleNamespace(count=2), sequences("gru"))  # type: ignore[arg-type]
    assert raised.value.message == 'the rows of "x" are on axis 1, but ol.train divides the first axis of the data among the workers'
    assert raised.value.hint == "declare the input with its rows on the first axis, and transpose it in the program"


def test_rows_that_no_input_has_are_refused():
    with pytest.raises(ol.ArgumentError, match="rows is a size of the inputs, not 'b'"):
        data_parallel(program_of({"x": ["n", 3]}), rows="b")


def sequences(cell: str) -> ol.Program:
    """A recurrent layer over sequences that come time first, and a label for each."""
    with ol.Program(seed=1) as program:
        x, y = ol.layer.data("x", ["n", 3], batch="t", dtype="float64"), ol.layer.data("y", [2], dtype="float64")
        last = {"gru": ol.layer.gru, "lstm": ol.layer.lstm}[cell](x, 2, name="g")[1]
        last = last[0] if isinstance(last, tuple) else last
        cost = ol.layer.mean(ol.op.square(last - y))
        ol.optimizer.SGD(0.5).minimize(cost)
        program.targets = {"loss": cost}
    return program


@pytest.mark.parametrize("cuts", [[0, 2, 4], [0, 0, 3, 4]])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_sequences_that_come_time_first_train_as_in_one_process(cell, cuts):
    random = numpy.random.default_rng(0)
    x, y = random.normal(size=(5, 4, 3)), random.normal(size=(4, 2))

    def steps(program: ol.Program, feed: dict, executor: ol.Executor) -> tuple[list, dict]:
        scope = ol.init(program, ol.Scope())
        losses = [float(executor.run(program, feed, ["loss"], scope=scope)[0]) for _ in range(2)]
        return losses, {var.name: scope[var.name].numpy() for var in program.parameters()}  # type: ignore[attr-defined]

    def work(workers: ThreadWorkers) -> tuple[list, dict]:
        program = sequences(cell)
        data_parallel(program)
        own = slice(cuts[workers.index], cuts[workers.index + 1])
        return steps(program, {"x": x[:, own], "y": y[own]}, ol.Executor(workers=workers))

    losses, parameters = steps(sequences(cell), {"x": x, "y": y}, ol.Executor())
    for own_losses, own in run_together(len(cuts) - 1, work):
        numpy.testing.assert_allclose(own_losses, losses, rtol=1e-12)
        for name, value in parameters.items():
            numpy.testing.assert_allclose(own[name], value, rtol=1e-12, atol=1e-12)

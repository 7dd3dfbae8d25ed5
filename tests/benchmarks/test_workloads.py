"""The workloads do the work that their description asks for: their losses are those of PyTorch.

`losses.json` holds the first three losses of each, in float32 on a CPU, from a program of `torch.nn` modules and `torch.optim` with the
same data and first weights (custom cells in a Python loop, rows chosen by a mask); of I1 to I3, the mean of what is given, without signs.
It was printed by `python benchmarks/run.py --rounds 1 --only torch:eager --peer torch=... --out ...`. Two take seconds: `-m slow`.
"""

import json
from pathlib import Path

import measure
import numpy
import pytest
import torch
import workloads

import oarlock as ol

LOSSES: dict[str, list[float]] = json.loads((Path(__file__).parent / "losses.json").read_text(encoding="utf-8"))
SLOW = {"W6", "W7"}
AGREEMENT = 1e-4  # relative; it is what the benchmark itself asks for


def test_every_workload_has_its_losses():
    assert list(LOSSES) == [*workloads.TRAINING, *workloads.INFERENCE]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in LOSSES])
def test_the_first_losses_are_those_of_pytorch(name):
    workload = workloads.describe(name)
    executor, scope = ol.Executor(), workload.scope()
    losses = []
    for _ in LOSSES[name]:
        (value,) = executor.run(workload.program, workload.feed, [workload.fetch], scope=scope, training=workload.training)
        losses.append(numpy.abs(value.astype("float64")).mean())
    numpy.testing.assert_allclose(losses, LOSSES[name], rtol=AGREEMENT)


def test_every_weight_is_set_that_a_workload_trains():
    for name in workloads.TRAINING:
        workload = workloads.describe(name)
        assert set(workload.weights) == {var.name for var in workload.program.parameters()}, name


@pytest.mark.parametrize("name", ["W12", "I1"])
def test_a_measurement_says_what_a_result_holds(name, monkeypatch):
    monkeypatch.setitem(workloads.STEPS, "W12", 9)
    result = measure.measure(name, min_time=0.01)
    numpy.testing.assert_allclose(result["losses"][0], LOSSES[name][0], rtol=AGREEMENT)
    assert (result["peer"], result["variant"], result["workload"]) == ("oarlock", "default", name)
    assert 0 < result["min_ms"] <= result["median_ms"] <= result["p90_ms"]
    assert 0 < result["rss_import_mb"] <= result["rss_peak_mb"]
    assert result["extra"] == ({"trips": 16} if name == "W12" else None)


def test_ragged_data_is_held_as_elements_and_row_splits():
    held = measure.as_tensors({"x": ol.Ragged.from_lists([[1.0, 2.0], [3.0]]), "y": numpy.array([1, 2])})
    assert {name: value.tolist() for name, value in held.items()} == {"x": [1.0, 2.0, 3.0], "x.splits": [0, 2, 3], "y": [1, 2]}
    assert isinstance(held["y"], torch.Tensor)

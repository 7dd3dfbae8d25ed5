"""X1 to X6 do the same work in Oarlock and in plain PyTorch: their first losses agree."""

import json
import sys

import further
import numpy
import peer_torch
import pytest
import workloads

import oarlock as ol


@pytest.mark.parametrize("name", further.TRAINING)
def test_the_first_losses_are_those_of_the_peer(name):
    workload, step = further.describe(name), peer_torch.stepper(name)
    executor, scope = ol.Executor(), workload.scope()
    losses = [executor.run(workload.program, workload.feed, [workload.fetch], scope=scope, training=True)[0].item() for _ in range(3)]
    numpy.testing.assert_allclose(losses, [step().item() for _ in range(3)], rtol=1e-4)
    assert len(set(losses)) == 3


@pytest.mark.parametrize("name", further.TRAINING)
def test_every_weight_that_is_trained_is_drawn(name):
    workload = further.describe(name)
    assert set(workload.weights) == {var.name for var in workload.program.parameters()}


def test_the_number_that_is_fed_says_which_network_runs():
    weights, feed = further.draw("X3")
    written = [further.write("X3", weights, feed | {"which": numpy.array(which)}) for which in (0, 1, 7)]
    losses = [ol.Executor().run(item.program, item.feed, [item.fetch], scope=item.scope())[0].item() for item in written]
    assert losses[0] != losses[1] == losses[2]


def test_names_are_not_those_of_other_workloads():
    assert not set(further.TRAINING) & {*workloads.TRAINING, *workloads.INFERENCE}


def test_the_peer_prints_what_a_peer_prints(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["peer_torch.py", "--list"])
    peer_torch.main()
    assert json.loads(capsys.readouterr().out) == {name: ["eager"] for name in further.TRAINING}
    result = peer_torch.measure("X5", min_time=0.01)
    assert (result["peer"], result["variant"], result["workload"], len(result["losses"])) == ("torch", "eager", "X5", 3)
    assert 0 < result["min_ms"] <= result["median_ms"] <= result["p90_ms"]

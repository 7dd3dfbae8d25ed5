"""The command that measures what recomputation saves."""

import allocation
import pytest
import recompute
import torch


@pytest.mark.parametrize("name", recompute.MODELS)
def test_a_step_of_each_model_learns_the_same(name):
    steps = [recompute.steps_of(name, recomputed=recomputed)[1] for recomputed in (False, True)]
    costs = [[step().item() for _ in range(2)] for step in steps]
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)
    assert costs[0][1] < costs[0][0]


def test_the_most_bytes_of_tensors_are_counted_and_views_once():
    def run() -> None:
        first = torch.zeros(1000)
        second = first.view(10, 100) + 1.0
        del first
        second.add_(1.0)

    assert allocation.peak_bytes(run) == 8000

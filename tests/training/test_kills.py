"""Some of what `python -m kills` does: a run that is killed at random instants ends with the bits of the unbroken run."""

import os
from pathlib import Path
from random import Random

import pytest
from kills.__main__ import tried
from kills.running import train

import oarlock as ol


@pytest.fixture(scope="module")
def unbroken() -> ol.TrainingResult:
    return train(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_is_killed_goes_on_with_the_same_bits_history_and_log(seed: int, unbroken: ol.TrainingResult, tmp_path: Path):
    kills, fault = tried(tmp_path / "run", Random(f"CI {seed}"), unbroken, 5)
    assert fault == ""
    assert kills > 0

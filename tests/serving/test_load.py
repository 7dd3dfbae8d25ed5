"""A short part of `python -m serving_load`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from serving.running import INSTALLED


@pytest.mark.parametrize("rows", ["32", pytest.param("1", marks=pytest.mark.slow)])
def test_some_seconds_of_load_lose_nothing(rows):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([INSTALLED, str(Path(__file__).parents[1])])}
    command = [sys.executable, "-m", "serving_load", "--clients", "16", "--seconds", "2", "--batch-rows", rows]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failures\n")

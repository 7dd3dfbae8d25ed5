"""`--workers`, as far as torchrun: its own parser reads the command that it is started by."""

import os
import sys

import pytest
from torch.distributed.run import parse_args

from oarlock.cli.workers import start_workers


def test_torchrun_leaves_every_word_of_the_command_to_it(monkeypatch):
    """Its parser takes `--run` and `--log` for what its own options might begin with, unless it is told where they end."""
    words = ["train", "model.py", "--workers", "2", "--run", "runs/one", "--log", "csv", "--", "--own", "3"]
    started = []
    monkeypatch.setattr(sys, "argv", ["oarlock", *words])
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    monkeypatch.delenv("RANK", raising=False)
    start_workers(2)
    ((python, m, torchrun, *rest),) = started
    assert (python, m, torchrun) == (sys.executable, "-m", "torch.distributed.run")
    found = parse_args(rest)
    assert (found.module, found.training_script, found.training_script_args) == (True, "oarlock", words)
    assert (found.nproc_per_node, found.standalone, found.max_restarts) == ("2", True, 3)


@pytest.mark.parametrize(("count", "environment"), [(1, {}), (2, {"RANK": "1"})])
def test_one_worker_and_a_worker_that_was_started_start_nobody(monkeypatch, count, environment):
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("torchrun was started"))
    monkeypatch.delenv("RANK", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    start_workers(count)

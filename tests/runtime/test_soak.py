"""Training for a long time: nothing grows. CONTRIBUTING.md gives the command for 100,000 steps."""

import mmap
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from soak.measuring import measure
from soak.model import feed, model

import oarlock as ol

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.mission("B7")
def test_two_thousand_steps_leave_nothing_behind():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "soak", "--steps", "2000", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failures\n")


def test_what_is_trained_makes_other_trips_in_every_step():
    program = model()
    scope = ol.init(program, ol.Scope())
    loops = ("main/rnn_0", "main/rnn_words", "main/while_0")
    seen = set()
    for step in range(20):
        with ol.Executor().run(program, feed(0, step), scope=scope, keep_scopes=True)[1] as scopes:
            seen.add(tuple(len(scopes[loop].children) if loop in scopes else 0 for loop in loops))
    assert len(seen) > 15
    assert all(len(set(counts)) > 3 for counts in zip(*seen, strict=True))


@pytest.mark.parametrize("what", ["memory", "scopes", "tensors", "threads", "files"])
def test_what_is_left_behind_is_noticed(what, tmp_path):
    """A mebibyte in 100 steps; one scope, tensor, thread or file in the last step."""
    held = []
    done = threading.Event()

    def leak(step):
        if what == "memory" and step % 100 == 0:  # not from the heap, which may have room from before
            held.append(mmap.mmap(-1, 2**20))
            held[-1].write(b"1" * 2**20)
        elif step == 199 and what == "scopes":
            held.append(ol.Scope())
        elif step == 199 and what == "tensors":
            held.append(torch.ones(1))
        elif step == 199 and what == "threads":
            held.append(threading.Thread(target=done.wait))
            held[-1].start()
        elif step == 199 and what == "files":
            held.append((tmp_path / "file").open("w"))

    growth = measure(leak, 2_000 if what == "memory" else 200, 100)
    done.set()
    if what in ("files", "memory"):
        for item in held:
            item.close()
    assert len(growth.failures) == 1
    assert growth.failures[0].startswith("memory grew by " if what == "memory" else f"{what} went from ")

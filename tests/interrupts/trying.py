"""One interrupt of one run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.ir.names import COUNTER

__all__ = ["Tried", "longest_run", "prepare", "try_once"]

_EPOCHS = 4_000
_COMMAND = [sys.executable, "-m", "oarlock", "train", "run.safetensors", "--data", "rows.npz", "--epochs", str(_EPOCHS)]


class Tried(NamedTuple):
    """The outcome of a trial: in words, the seconds from the signal to the end, and the fault, if there is one."""

    outcome: str
    seconds: float
    fault: str


def prepare(folder: Path) -> None:
    """A training program that has taken one step, and its data."""
    rows = small_rows()
    result = ol.train(
        small_classifier(dropout=0.5).cost, rows, optimizer=ol.optimizer.Adam(), steps=1, batch_size=5, epochs=2, progress=False
    )
    ol.save_model(result, folder / "first.safetensors")
    numpy.savez(folder / "rows.npz", **rows)  # type: ignore[arg-type]


def longest_run(folder: Path) -> float:
    """Seconds that the whole run takes."""
    started = time.monotonic()
    child = _start(folder)
    child.communicate()
    assert child.returncode == 0
    return time.monotonic() - started


def try_once(folder: Path, after: float, *, patience: float, options: Sequence[str] = ()) -> Tried:
    """Start the run from the beginning, with more `options`, interrupt it `after` so many seconds, and look at what it leaves."""
    child = _start(folder, options)
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    fault = ""
    try:
        said, complained = child.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        fault = f"still ran after {patience:g} s"
        child.kill()
        said, complained = child.communicate()
    seconds = time.monotonic() - sent
    left = sorted(set(os.listdir(folder)) - {"first.safetensors", "rows.npz"})
    steps = int(ol.load_model(folder / "run.safetensors").scope[COUNTER])  # type: ignore[call-overload]  # a file that is whole
    outcomes = {-signal.SIGINT: "before the program was read", 0: "after the end", 130: "while it trained"}
    if child.returncode == 130 and "interrupted" not in said:
        outcome = "before or after training"
    else:
        outcome = outcomes.get(child.returncode, f"status {child.returncode}")
    if not fault and left != ["run.safetensors"] and child.returncode != -signal.SIGINT:
        fault = f"left {left}"
    elif not fault and child.returncode == 1 and complained.rstrip().endswith("KeyboardInterrupt") and "oarlock" not in complained:
        outcome = "while Python itself began"
    elif not fault and child.returncode not in outcomes:
        fault = f"status {child.returncode}: {complained[-500:]}"
    elif (
        not fault
        and "interrupted after" in said
        and f"interrupted after {steps} steps; saved run.safetensors\nNext: oarlock train " not in said
    ):
        fault = f"said {said[-200:]!r}, and saved {steps} steps"
    return Tried(outcome, seconds, fault)


def _start(folder: Path, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    data = (folder / "first.safetensors").read_bytes()
    for path in folder.glob(".oarlock-*"):
        path.unlink()
    (folder / "run.safetensors").write_bytes(data)
    environment = os.environ | {"PYTHONPATH": str(Path(ol.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*_COMMAND, *options], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

"""The tests under each setting of a process that is known to change how kernels round.

python -m settings                      all tests, under each setting
python -m settings --fast               those that compare bits
python -m settings --only avx2 "two threads"
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["FAST", "SETTINGS", "Outcome", "environment", "run_tests"]

ROOT = Path(__file__).parents[2]

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {"ATEN_CPU_CAPABILITY": "default"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "MKL AVX2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "MKL SSE4.2": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "MKL compatible": {"MKL_CBWR": "COMPATIBLE"},
    "oneDNN SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "one thread": {"OMP_NUM_THREADS": "1"},
    "two threads": {"OMP_NUM_THREADS": "2"},
}
"""PyTorch's own kernels, MKL's, oneDNN's; and threads, of which there is one in each process where nothing else is said."""

FAST = (
    "tests/op/test_rounding.py",
    "tests/op/test_dot.py",
    "tests/op/test_packed_filters.py",
    "tests/passes/test_hoist_transposes.py",
    "tests/passes/test_updates.py",
    "tests/runtime/test_expressions.py",
    "tests/runtime/test_loops_of_plans.py",
    "tests/runtime/test_numbers_of_plans.py",
    "tests/training/test_repeating.py",
    "tests/training/test_resume.py::test_a_run_may_be_stopped_many_times",
)
"""The tests that compare bits, as far as they take seconds."""


class Outcome(NamedTuple):
    passed: bool
    summary: str
    """The last line of pytest, and where a test failed the whole output."""
    seconds: float


def environment(setting: str) -> dict[str, str]:
    """The variables of a process with one setting, and no other."""
    known = {name for variables in SETTINGS.values() for name in variables}
    inherited = {name: value for name, value in os.environ.items() if name not in known and not name.startswith("PYTEST_")}
    return {**inherited, "OMP_NUM_THREADS": "1", **SETTINGS[setting]}


def run_tests(setting: str, arguments: Sequence[str]) -> Outcome:
    """Run pytest with these arguments in a new process that has the setting."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(setting), capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    passed = done.returncode == 0
    return Outcome(passed, said.rpartition("\n")[2].strip("= ") if passed else said, time.perf_counter() - began)

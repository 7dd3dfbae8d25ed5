"""Other processes: what a stranger has is the installed package, an empty folder, and the files that they were given."""

import os
import subprocess
import sys
from pathlib import Path

import torch

import oarlock

__all__ = ["run_oarlock", "run_python"]

INSTALLED = str(Path(oarlock.__file__).parent.parent)
OURS = ("PYTHON", "PYTEST", "COV", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")  # what another process does not inherit


def run_python(code: str, folder: Path, *arguments: object) -> str:
    """Run `code` in a new process whose working directory is `folder`; return what it prints."""
    done = _run(["-c", code, *map(str, arguments)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_oarlock(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m oarlock ...` in a new process whose working directory is `folder`."""
    return _run(["-m", "oarlock", *map(str, arguments)], folder)


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment |= {"PYTHONPATH": INSTALLED, "COLUMNS": "120", "NO_COLOR": "1"}
    environment["OMP_NUM_THREADS"] = str(torch.get_num_threads())  # sums over threads are rounded as in this process
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)

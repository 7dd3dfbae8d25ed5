"""A copy of the package with one fault in it, and the tests that should notice."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from faults.seeded import Fault

__all__ = ["is_caught", "without_fault"]

ROOT = Path(__file__).parent.parent.parent


def is_caught(fault: Fault) -> bool:
    """Whether its tests fail with a fault. Raises ValueError where it does not stand in its file, and where its tests do not run."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "oarlock" / fault.file
        before = path.read_text(encoding="utf-8")
        if fault.text not in before:
            raise ValueError(f"{fault.text!r} does not stand in {fault.file}")
        path.write_text(before.replace(fault.text, fault.instead, 1), encoding="utf-8")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", f"pythonpath={source} {ROOT / 'tests'}"]
        done = subprocess.run(
            [*command, *(str(ROOT / "tests" / name) for name in fault.tests)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):  # they were not run at all
        raise ValueError(f"{', '.join(fault.tests)}: {done.stdout[-2000:]}")
    return done.returncode == 1


def without_fault(tests: tuple[str, ...]) -> Fault:
    """A copy as it is, for some tests, which must not fail with it."""
    return Fault("ir/verification.py", "", "", tests)

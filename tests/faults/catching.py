"""A copy of the package with one fault in it, and the tests that should notice."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from faults.seeded import FAULTS, VERIFIER, Fault

__all__ = ["is_caught"]

ROOT = Path(__file__).parent.parent.parent


def is_caught(number: int | None) -> bool:
    """Whether the tests fail with fault `number`, or in a faithful copy. Raises ValueError where its text is not in the file."""
    file, text, instead, tests = Fault("ir/verify.py", "", "", VERIFIER) if number is None else FAULTS[number]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "oarlock" / file
        before = path.read_text(encoding="utf-8")
        if text not in before:
            raise ValueError(f"fault {number}: {text!r} does not stand in {file}")
        path.write_text(before.replace(text, instead, 1), encoding="utf-8")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", f"pythonpath={source} {ROOT / 'tests'}"]
        done = subprocess.run(
            [*command, *(str(ROOT / "tests" / name) for name in tests)], cwd=folder, env=environment, capture_output=True, check=False
        )
    return done.returncode != 0

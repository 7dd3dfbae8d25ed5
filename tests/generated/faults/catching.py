"""A copy of the package with one fault in it, and the generated programs that should notice."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generated.faults.patching import Fault, apply

__all__ = ["Caught", "catch", "catch_all", "copied"]

ROOT = Path(__file__).parent.parent.parent.parent
PROCESSES = 2


@dataclass(frozen=True)
class Caught:
    """The outcome of a fault: after how many programs a check failed, None where none did, and why."""

    programs: int | None
    reason: str


@contextmanager
def copied() -> Iterator[Path]:
    """A folder with `src` and `tests` as they are now, so that a long run sees one state of both."""
    with tempfile.TemporaryDirectory() as folder:
        _copy(ROOT, Path(folder), "src", "tests")
        yield Path(folder)


def _copy(source: Path, target: Path, *names: str) -> None:
    for name in names:
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))


def catch(fault: Fault | None, root: Path, seed: int, count: int, *, kind: str = "B1") -> Caught:
    """Check generated programs, in a process of its own, against a copy of `root` with a fault, or without, until one fails.

    The class of the fault says by which checks; `kind` where there is no fault. A process that ends otherwise than by a failing check has
    caught nothing. Raises PatchError where the fault does not apply.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy(root, copy, "src")
        if fault is not None:
            apply(fault, copy)
        path = os.pathsep.join([str(copy / "src"), str(root / "tests")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        kind = kind if fault is None else fault.kind
        command = [sys.executable, "-m", "generated.faults.noticing", kind, str(seed), str(count), str(copy / "src")]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = ([line for line in done.stderr.splitlines() if line[:1].strip()] or ["it said nothing"])[-1]  # what is indented explains it
        return Caught(None, f"no check: the process ended with {done.returncode}: {last}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Caught(found["programs"], found["reason"])


def catch_all(faults: list[Fault], root: Path, seed: int, count: int) -> Iterator[tuple[Fault, Caught]]:
    """The outcome of each fault, in order; two at a time."""
    with ThreadPoolExecutor(PROCESSES) as pool:
        yield from zip(faults, pool.map(lambda fault: catch(fault, root, seed, count), faults), strict=True)

"""Other processes: what a stranger has is the installed package, an empty folder, and the files that they were given."""

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch

import oarlock

__all__ = ["become", "end_of", "fork", "run_forked", "run_module", "run_oarlock", "run_python", "run_script"]

INSTALLED = str(Path(oarlock.__file__).parent.parent)
OURS = ("PYTHON", "PYTEST", "COV", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")  # what another process does not inherit


def run_python(code: str, folder: Path, *arguments: object) -> str:
    """Run `code` in a new process whose working directory is `folder`; return what it prints."""
    done = _run(["-c", code, *map(str, arguments)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_forked(code: str, folder: Path, *arguments: object) -> str:
    """`run_python`, but by `fork`: for code of which no import is tested."""
    done = _run_forked(code, folder, "-c", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run_forked(code: str, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as shown:
        paths = [Path(shown) / name for name in ("output", "errors")]
        for path in paths:
            path.touch()
        process = fork(_run_code, code, folder, list(map(str, arguments)), _environment(), paths)
        (status,) = end_of([process], 300.0)
        return subprocess.CompletedProcess(arguments, status, *(path.read_text() for path in paths))


def _run_code(code: str, folder: Path, arguments: list[str], environment: Mapping[str, str], printed: Sequence[Path]) -> None:
    os.chdir(folder)
    become(arguments, environment, printed)
    sys.path[:] = [
        "",
        INSTALLED,
        *(path for path in sys.path if path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))),
    ]  # none of the tests
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
    finally:
        threading._shutdown()  # as Python does: it waits for threads, and then
        atexit._run_exitfuncs()  # which a process of `multiprocessing` leaves out


def become(arguments: list[str], environment: Mapping[str, str], printed: Sequence[Path]) -> None:
    """Take the arguments and the environment of another process, no input, and files in place of its output and its errors."""
    os.environ.clear()
    os.environ.update(environment)
    if threads := environment.get("OMP_NUM_THREADS"):  # which PyTorch read when the server began
        torch.set_num_threads(int(threads))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(printed, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), number)
    sys.argv = arguments


_PRELOADED = ["oarlock.cli.main", "oarlock.cli.train", "oarlock.io.model", "oarlock.layer", "oarlock.op", "torch.distributed"]
_PRELOADED += ["sklearn.datasets", "sklearn.model_selection"]  # of most data sets, a second each time


def fork(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """Call `target` in a child of a process that has imported what trains, and computed nothing: seconds sooner than by a new process.

    It ends without Python taking PyTorch apart, which would be another second.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def end_of(processes: Sequence[ForkServerProcess], seconds: float = 120.0) -> list[int | None]:
    """The exit codes of processes, none of which may take longer: those that do are killed, and the test fails."""
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    hanging = [process for process in processes if process.is_alive()]
    for process in hanging:
        process.kill()
        process.join()
    assert not hanging, f"{len(hanging)} of {len(processes)} processes did not end in {seconds:.0f} s"
    return [process.exitcode for process in processes]


def run_script(script: Path, arguments: list[str], environment: Mapping[str, str], printed: Path) -> None:
    """Be the process of a script, which prints into a file: the `target` of `fork`."""
    become([str(script), *arguments], environment, [printed, printed])
    runpy.run_path(str(script), run_name="__main__")


def run_oarlock(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `oarlock ...` as its own process whose working directory is `folder`: a child of one that has imported Oarlock."""
    return _run_forked("from oarlock.cli.entry import run\nrun()", folder, "oarlock", *arguments)


def run_module(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m oarlock ...` in a new process whose working directory is `folder`."""
    return _run(["-m", "oarlock", *map(str, arguments)], folder)


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=_environment(), capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment |= {"PYTHONPATH": INSTALLED, "COLUMNS": "120", "NO_COLOR": "1"}
    environment["OMP_NUM_THREADS"] = str(torch.get_num_threads())  # sums over threads are rounded as in this process
    return environment

"""Other processes: what a stranger has is the installed package, an empty folder, and the files that they were given."""

import atexit
import functools
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch

import oarlock

__all__ = ["fork", "run_forked", "run_module", "run_oarlock", "run_python", "run_script"]

INSTALLED = str(Path(oarlock.__file__).parent.parent)
OURS = ("PYTHON", "PYTEST", "COV", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")  # what another process does not inherit


def run_python(code: str, folder: Path, *arguments: object) -> str:
    """Run `code` in a new process whose working directory is `folder`; return what it prints."""
    done = _run(["-c", code, *map(str, arguments)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_forked(code: str, folder: Path, *arguments: object) -> str:
    """`run_python`, but in a child of a process that has imported PyTorch and Oarlock, and computed nothing: seconds sooner.

    For code of which no import is tested.
    """
    done = _run_forked(code, folder, "-c", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run_forked(code: str, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    server = _forking()
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as shown:
        server.stdin.write(json.dumps([code, str(folder), shown, list(map(str, arguments)), _environment()]) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, *((Path(shown) / f"{number}").read_text() for number in (1, 2)))


_FORKING = """
import atexit, json, os, sys, threading, traceback, types
import torch, oarlock.io.model, oarlock.layer, oarlock.op, oarlock.training.trainer
try:
    import sklearn.datasets, sklearn.model_selection  # of most data sets, a second each time
except ImportError:
    pass
for line in sys.stdin:
    code, folder, shown, arguments, environment = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, closefd=False)
        for number in (1, 2):
            os.dup2(os.open(f"{shown}/{number}", os.O_WRONLY | os.O_CREAT), number)
        sys.argv = arguments
        sys.modules["__main__"] = types.ModuleType("__main__")
        status = 0
        try:
            exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
        except SystemExit as ended:
            status = ended.code or 0
        except BaseException:
            status = 1
            traceback.print_exc()
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(status)  # to take all of PyTorch apart would be another second
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _forking() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    server = subprocess.Popen([sys.executable, "-c", _FORKING], env=_environment(), stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)  # which closes its input, and so ends it
    return server


_PRELOADED = ["oarlock.cli.main", "oarlock.cli.train", "torch.distributed", "sklearn.datasets", "sklearn.model_selection"]


def fork(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """Call `target` in a child of a process that has imported what trains, and computed nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def run_script(script: Path, arguments: list[str], environment: Mapping[str, str], printed: Path) -> None:
    """Be the process of a script, which prints into a file: the `target` of `fork`."""
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
    sys.argv = [str(script), *arguments]
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

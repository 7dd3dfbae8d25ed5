"""Other processes: what a stranger has is the installed package, an empty folder, and the files that they were given."""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import oarlock

__all__ = ["run_forked", "run_oarlock", "run_python"]

INSTALLED = str(Path(oarlock.__file__).parent.parent)
OURS = ("PYTHON", "PYTEST", "COV", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")  # what another process does not inherit


def run_python(code: str, folder: Path, *arguments: object) -> str:
    """Run `code` in a new process whose working directory is `folder`; return what it prints."""
    done = _run(["-c", code, *map(str, arguments)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_forked(code: str, folder: Path, *arguments: object) -> str:
    """`run_python`, but in a child of a process that has imported PyTorch and Oarlock, and computed nothing: two seconds sooner.

    For code of which no import is tested.
    """
    with tempfile.TemporaryDirectory() as shown:
        server = _forking()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps([code, str(folder), shown, ["-c", *map(str, arguments)]]) + "\n")
        server.stdin.flush()
        returned = server.stdout.readline()
        assert returned == "0\n", (Path(shown) / "2").read_text()
        return (Path(shown) / "1").read_text()


_FORKING = """
import json, os, sys, types
import torch, oarlock.io.model, oarlock.layer, oarlock.op, oarlock.training.trainer
try:
    import sklearn.datasets, sklearn.model_selection  # of most data sets, a second each time
except ImportError:
    pass
for line in sys.stdin:
    code, folder, shown, arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(os.open(f"{shown}/{number}", os.O_WRONLY | os.O_CREAT), number)
        sys.argv = arguments
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _forking() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    server = subprocess.Popen([sys.executable, "-c", _FORKING], env=_environment(), stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)  # which closes its input, and so ends it
    return server


def run_oarlock(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m oarlock ...` in a new process whose working directory is `folder`."""
    return _run(["-m", "oarlock", *map(str, arguments)], folder)


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=_environment(), capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment |= {"PYTHONPATH": INSTALLED, "COLUMNS": "120", "NO_COLOR": "1"}
    environment["OMP_NUM_THREADS"] = str(torch.get_num_threads())  # sums over threads are rounded as in this process
    return environment

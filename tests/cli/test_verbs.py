"""Verbs are imported when they are asked for: what a command imports, what an interrupt does meanwhile, and what is told without it."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.cli import main
from oarlock.cli.verbs import Verb

VERBS = [*main.VERBS.values(), *main.IMPORTS.values()]


def run_python(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ol.__file__).parents[1]), "COLUMNS": "120", "NO_COLOR": "1"}
    return subprocess.run([sys.executable, "-c", code, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run "one"."""
    folder = tmp_path_factory.mktemp("runs")
    ol.train(small_classifier().cost, small_rows(), validate=small_rows(), run=folder / "one", epochs=2, progress=False)
    return folder


# Imports


OTHERS = "show", "check", "diff", "opt"
COMMAND = """
import sys
from oarlock.cli.entry import run
try:
    run()
finally:
    heavy = ("torch", "oarlock.training.trainer", "oarlock.runtime", "oarlock.op", "oarlock.interop")
    print("heavy:", *(name for name in heavy if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Train a model."),
        ("--help", "Train a model."),
        ("--version", ol.__version__),
        ("--verson", "--version"),
        ("trian", "Did you mean 'train'?"),
        ("import --help", "Import an ONNX model"),
        ("import trch", "Did you mean 'torch'?"),
        ("explain", "ShapeError"),
        ("explain ShapeError", "ShapeError"),
        ("runs .", "validation loss"),
        ("runs --help", "Run folders"),
        ("plot one", "loss"),
        ("plot one --out curves.svg", "saved curves.svg"),
    ],
)
def test_help_and_looking_at_runs_need_no_pytorch(words, says, folder):
    done = run_python(COMMAND, folder, *words.split())
    assert says in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_training_imports_nothing_that_only_other_verbs_need(tmp_path):
    code = "import sys\nfrom oarlock.cli.main import import_verb\nimport_verb(['train'])\n"
    code += "print(*(name for name in sys.modules if name.startswith(('oarlock.interop', 'oarlock.report', 'oarlock.serving'))))"
    assert run_python(code, tmp_path).stdout == "\n"


@pytest.mark.parametrize("verb", ["hash", "plan", *(pytest.param(verb, marks=pytest.mark.slow) for verb in OTHERS)])
def test_a_verb_by_itself_knows_the_operators_of_a_training_program(verb, tmp_path):
    """Other verbs, which are not imported any more, used to register them."""
    code = f"from oarlock.cli.main import import_verb\nimport_verb([{verb!r}])\n"
    code += "from oarlock.registry.catalogue import standard\nprint(standard.find('adam') is not None)"
    assert run_python(code, tmp_path).stdout == "True\n"


# Descriptions


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.function or verb.module)
def test_the_help_that_is_read_from_a_file_is_the_docstring_of_its_function(verb: Verb):
    function = getattr(importlib.import_module(f"oarlock.cli.{verb.module}"), verb.function or verb.module)
    assert verb.help == inspect.getdoc(function)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.function or verb.module)
def test_a_verb_with_untrusted_opens_a_program_and_its_places_are_parameters(verb: Verb):
    function = getattr(importlib.import_module(f"oarlock.cli.{verb.module}"), verb.function or verb.module)
    parameters = inspect.signature(function).parameters
    assert verb.opens_program == ("untrusted" in parameters and verb.module != "serve")  # which runs no child
    assert set(verb.places) <= set(parameters)


# Interrupts


INTERRUPTED = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "oarlock.cli.reference":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("dropped")  # as libraries do

sys.meta_path.insert(0, Interrupting())
sys.argv = ["oarlock", "explain", "ShapeError"]
signal.signal(signal.SIGINT, %s)
from oarlock.cli.entry import run
try:
    run()
finally:
    handler = signal.getsignal(signal.SIGINT)
    print(getattr(handler, "name", None) or handler.__name__)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
def test_an_interrupt_while_a_verb_is_imported_ends_the_command_at_once_and_is_not_lost(tmp_path):
    done = run_python(INTERRUPTED % "signal.default_int_handler", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (-2, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
def test_who_starts_a_command_so_that_it_ignores_interrupts_is_obeyed(tmp_path):
    done = run_python(INTERRUPTED % "signal.SIG_IGN", tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], lines[-1]) == (0, "ShapeError", "SIG_IGN")


def test_after_the_import_an_interrupt_is_raised_as_python_does(tmp_path):
    code = (INTERRUPTED % "signal.default_int_handler").replace("signal.raise_signal(signal.SIGINT)", "pass")
    done = run_python(code, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "default_int_handler")


CHILD = """
import signal, sys
from oarlock.cli import child

def limit(limits):
    here = [name in sys.modules for name in (sys.argv[1], "torch", "oarlock.cli.untrusted_run")]
    print(*here, signal.getsignal(signal.SIGINT) is signal.SIG_DFL, file=sys.stderr)

child.limit, child.isolate = limit, lambda: True
child.main(["{}", *sys.argv[2:], "--untrusted", "nothing.safetensors"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="untrusted files can only be run on Linux")
@pytest.mark.parametrize(("verb", "module"), [("show", "inspection"), ("import onnx", "conversion")])
def test_the_child_of_untrusted_has_imported_its_verb_when_it_limits_itself(verb, module, tmp_path):
    done = run_python(CHILD, tmp_path, f"oarlock.cli.{module}", *verb.split())
    assert (done.returncode, done.stderr) == (0, "True True True True\n")

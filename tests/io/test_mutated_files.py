"""Files from strangers: each is a program or is refused, soon, in little memory, and nothing else happens."""

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from fuzz.files import DRAFT_MUTATORS, FILE_MUTATORS
from fuzz.judging import REFUSALS, Tally, judge, probe
from fuzz.making import make
from fuzz.programs import MUTATORS
from fuzz.seeds import SEEDS, draft_of

import oarlock as ol

ROOT = Path(__file__).parent.parent.parent
FILES = 300


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_malformed_files_are_programs_or_refused_and_soon_and_in_little_memory():
    """CONTRIBUTING.md gives the command for 50,000 of them."""
    done = run_python("-m", "fuzz", "--seed", "0", "--count", str(FILES))
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    counts = {outcome: int(count.replace(",", "")) for count, outcome in re.findall(r"^ *([\d,]+)  (\S.*)$", done.stdout, re.M)}
    assert sum(counts.values()) == FILES
    assert counts["VerifyError"] > FILES / 5
    assert counts["FormatError"] > FILES / 5
    assert counts["runs"] > FILES / 20
    p99, longest = map(float, re.search(r"p99 ([\d.]+) +longest ([\d.]+)", done.stdout).groups())
    assert p99 < 1
    assert longest < 5
    assert int(re.search(r"grew by (\d+) MiB", done.stdout)[1]) < 512


def test_there_are_many_ways_to_spoil_a_file_and_all_are_used():
    mutators = {*MUTATORS, *DRAFT_MUTATORS, *FILE_MUTATORS}
    assert len(mutators) >= 70
    assert {name for number in range(500) for name in make(0, number).mutators} == mutators


def test_a_file_is_made_again_from_its_numbers():
    assert make(4, 9) == make(4, 9)
    assert make(4, 9).data != make(5, 9).data


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_file_that_was_not_spoiled_runs(name, tmp_path):
    path = tmp_path / "good.safetensors"
    path.write_bytes(draft_of(name).to_bytes())
    assert probe(path) == "runs"


def test_what_the_judge_does_not_foresee_is_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "good.safetensors"
    path.write_bytes(draft_of("nested").to_bytes())
    monkeypatch.setattr(ol, "load_model", lambda path: {}["nothing"])
    tally = Tally()
    judge(path, tally, "here")
    assert tally.failures == ["here: KeyError: 'nothing'"]


# Truncation


def smallest() -> bytes:
    with ol.Program() as program:
        y = ol.op.relu(ol.layer.data("x", shape=[], batch="n"), name="y")
        program.targets["y"] = y
    draft = draft_of("nested")
    draft.program.ParseFromString(program.to_bytes(source=False))
    draft.tensors = {}
    return draft.to_bytes()


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    data, path = smallest(), tmp_path / "cut.safetensors"
    path.write_bytes(data)
    assert probe(path) == "runs"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert probe(path) == "FormatError", f"cut at byte {length}"


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_program_cut_at_any_byte_is_refused_or_says_something_else(name, tmp_path):
    """The container is sound, so that the program's own reader is asked; 200 places of each."""
    random, draft, path = Random(0), draft_of(name), tmp_path / "cut.safetensors"
    data = draft.serialized()
    for length in random.sample(range(len(data)), 200):
        draft.program_bytes = data[:length]
        path.write_bytes(draft.to_bytes())
        assert probe(path) in ("FormatError", "VerifyError"), f"cut at byte {length}"


# Text


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_text_that_is_changed_anywhere_is_a_program_or_refused(name):
    random, text = Random(0), SEEDS[name]().to_text(source=False)
    letters = sorted(set(text)) + list('"#$\\²٣🙂\0') + ["[[", "9" * 5000, "1e+16", "-1", "{}", "\n", "as "]
    for _ in range(400):
        at = random.randrange(len(text))
        changed = text[:at] + random.choice(letters) + text[at + random.choice([0, 1, 1, 5]) :]
        try:
            program = ol.registry.parse_program(changed)
        except REFUSALS as error:
            if len(str(error).encode()) > 4096:
                pytest.fail("a message of more than 4 KiB")
        else:
            assert ol.registry.parse_program(program.to_text()).to_bytes(source=False) == program.to_bytes(source=False)


# What happens besides

AUDIT = """
import sys, tempfile
from pathlib import Path
import oarlock as ol
from fuzz.judging import REFUSALS
from fuzz.making import make
from fuzz.seeds import draft_of, SEEDS

path = Path(tempfile.mkdtemp()) / "model.safetensors"
files = [make(11, number).data for number in range(500)] + [draft_of(name).to_bytes() for name in SEEDS]
path.write_bytes(draft_of("digits").to_bytes())
ol.load_model(path)  # what the package imports when it is first used
seen, watching = {}, False
WATCHED = ("code.__new__", "compile", "ctypes", "exec", "import", "marshal", "open", "os.",
           "pickle", "shutil", "socket", "subprocess", "tempfile")

def hook(event, arguments):
    ours = event == "open" and (str(arguments[0]) == str(path) or type(arguments[0]) is int)  # a number is a file that is open already
    if watching and event.startswith(WATCHED) and not ours:
        seen.setdefault(event, str(arguments)[:200])

sys.addaudithook(hook)
loaded = 0
for data in files:
    watching = False
    path.write_bytes(data)
    watching = True
    try:
        model = ol.load_model(path)
        ol.ir.verification.verify_program(model.program)
        loaded += 1
    except REFUSALS:
        pass
watching = False
print(loaded > 25, sorted(seen.items()))
"""


def test_nothing_is_imported_compiled_started_or_opened_while_files_are_read(tmp_path):
    (tmp_path / "audit.py").write_text(AUDIT)
    done = run_python(str(tmp_path / "audit.py"))
    assert done.stderr == ""
    assert done.stdout == "True []\n"


def test_the_hook_of_the_test_above_sees_what_it_should(tmp_path):
    spoiled = AUDIT.replace("ol.ir.verification.verify_program(model.program)", "eval('1'); open('/etc/hostname').close()")
    (tmp_path / "audit.py").write_text(spoiled)
    done = run_python(str(tmp_path / "audit.py"))
    assert "compile" in done.stdout
    assert "/etc/hostname" in done.stdout

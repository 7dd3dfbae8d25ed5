"""Generated programs find what is broken: 87 faults, each a patch. `python -m generated.faults` applies them all, one at a time."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from generated.faults.catching import ROOT, Caught, catch
from generated.faults.patching import FAULTS, Fault, PatchError, apply

QUICK = ("B1-03", "R1-05", "B2-05", "B8-01", "B9-02")
CLASSES = [*(f"B{number}" for number in range(1, 10)), "R1"]


@pytest.fixture
def source(tmp_path) -> Path:
    """A folder with a copy of the source."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_there_are_eighty_seven_in_all_ten_classes():
    counts = Counter(fault.kind for fault in FAULTS)
    assert (sum(counts.values()), sorted(counts)) == (87, CLASSES)
    assert min(counts.values()) >= 6


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_says_its_class_and_in_a_sentence_what_is_broken(fault):
    assert re.fullmatch(r"[BR][1-9]-[0-9]{2}-[a-z0-9-]+", fault.name)
    assert fault.name.startswith(f"{fault.kind}-")
    assert re.fullmatch(r"[A-Za-z0-9].{20,}\.", fault.sentence)


def test_every_fault_applies_to_the_source_as_it_is_and_compiles(source):
    for fault in FAULTS:
        kept = {path: path.read_text(encoding="utf-8") for path in _files(fault, source)}
        for path in apply(fault, source):
            text = path.read_text(encoding="utf-8")
            assert text != kept[path], fault.name
            compile(text, str(path), "exec")
            path.write_text(kept[path], encoding="utf-8")


def _files(fault: Fault, root: Path) -> list[Path]:
    return [root / name for name in re.findall(r"^\+\+\+ b/(.+)$", fault.path.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.mark.parametrize("name", [QUICK[0], *(pytest.param(name, marks=pytest.mark.slow) for name in QUICK[1:])])
def test_a_fault_is_caught_within_sixty_programs(name):
    (fault,) = (fault for fault in FAULTS if fault.name.startswith(name))
    caught = catch(fault, ROOT, seed=0, count=60)
    assert caught.programs is not None, caught.reason


def test_a_faithful_copy_catches_nothing():
    assert catch(None, ROOT, seed=0, count=3) == Caught(None, "no check of 3 programs fails")


def _patch(folder: Path, name: str, text: str) -> Fault:
    (folder / name).write_text(text, encoding="utf-8")
    return Fault(folder / name)


@pytest.mark.parametrize(
    ("hunk", "message"),
    [
        ("@@ -1,2 +1,2 @@\n a\n-c\n+d\n", "B1-99-broken: a hunk fits 0 places of src/x.py, where it must fit one"),
        ("@@ -1 +1 @@\n-a\n+d\n", "B1-99-broken: a hunk fits 2 places of src/x.py, where it must fit one"),
        ("@@ -1,3 +1,3 @@\n-a\n+d\n", "B1-99-broken: a hunk ends before its lines do"),
        ("@@ what @@\n-a\n+d\n", "B1-99-broken: '@@ what @@' begins no hunk"),
        ("", "B1-99-broken: there is no hunk in it"),
    ],
)
def test_a_patch_that_does_not_fit_is_an_error_and_changes_nothing(hunk, message, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/x.py").write_text("a\nb\na\n", encoding="utf-8")
    fault = _patch(tmp_path, "B1-99-broken.patch", f"B1: it is broken.\n\n--- a/src/x.py\n+++ b/src/x.py\n{hunk}")
    with pytest.raises(PatchError) as raised:
        apply(fault, tmp_path)
    assert str(raised.value) == message
    assert (tmp_path / "src/x.py").read_text(encoding="utf-8") == "a\nb\na\n"


def test_a_package_that_cannot_be_imported_is_no_catch(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "src/oarlock/__init__.py").write_text("raise ImportError('broken')\n", encoding="utf-8")
    caught = catch(None, tmp_path, seed=0, count=3)
    assert caught == Caught(None, "no check: the process ended with 1: ImportError: broken")

"""The README of a folder has a table of exactly its files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READMES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("src/oarlock/*/**/README.md", "tests/**/README.md", "benchmarks/**/README.md")
    for path in ROOT.glob(pattern)
)


def listed(text: str) -> list[str]:
    """Return the names in backticks in the first column of the tables: `name.py`, `folder/name.py`, `folder/`."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", cell)]


def modules(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.py")} - {"__init__.py"}


def folders(folder: Path) -> set[str]:
    return {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.py"))}


def difference(text: str, folder: Path) -> dict[str, list[str]]:
    """Return the files and folders that are missing in the tables of `text`, unknown, or listed twice.

    All files of `folder` must be listed. If one of its folders is listed, all must be; if one file of such a folder is listed, all must be.
    """
    names = listed(text)
    opened = {name[: name.rindex("/") + 1] for name in names if "/" in name and not name.endswith("/")}
    there = modules(folder) | {inner + name for inner in opened for name in modules(folder / inner)}
    if any(name.endswith("/") for name in names):
        there |= folders(folder)
    faults = {"missing": there - {*names}, "unknown": {*names} - there, "twice": {name for name in names if names.count(name) > 1}}
    return {fault: sorted(found) for fault, found in faults.items() if found}


@pytest.mark.parametrize("readme", READMES)
def test_the_table_of_a_readme_has_each_file_of_its_folder(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert listed(text)
    assert difference(text, (ROOT / readme).parent) == {}


def test_files_and_folders_that_a_table_lacks_or_invents_are_found(tmp_path):
    for name in ("__init__.py", "a.py", "b.py", "in/c.py", "in/d.py", "on/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert difference("| `a.py`, `b.py` | `gone.py` |\n`gone.py`", tmp_path) == {}
    assert difference("| `a.py` | one |\n| `a.py` | again |\n| `gone.py` | no |", tmp_path) == {
        "missing": ["b.py"],
        "unknown": ["gone.py"],
        "twice": ["a.py"],
    }
    assert difference("| `a.py`, `b.py` | |\n| `in/c.py` | |", tmp_path) == {"missing": ["in/d.py"]}
    assert difference("| `a.py`, `b.py` | |\n| `in/` | |\n| `off/` | |", tmp_path) == {"missing": ["on/"], "unknown": ["off/"]}

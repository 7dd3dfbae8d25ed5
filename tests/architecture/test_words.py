"""Plain words: the counts of sentences that are hard to read only fall, and every public name has a docstring."""

import importlib
import inspect
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORDS = runpy.run_path(str(ROOT / "tools" / "words.py"))
sys.path.insert(0, str(ROOT / "docs"))
NAMES = importlib.import_module("reference_pages.names")


def test_no_folder_has_more_sentences_that_are_hard_to_read():
    """After you rewrote some, `python tools/words.py --lower` lowers the limits."""
    found = WORDS["excesses"](WORDS["count_words"](), WORDS["read_limits"]())
    assert found == [], "python tools/words.py --list FOLDER lists them"


def test_a_count_above_its_limit_and_a_new_folder_are_reported():
    limits = {"op": {"docstrings": 2, "two": 0}}
    counts = {"op": {"docstrings": 3, "two": 0}, "new": {"docstrings": 0, "two": 1}}
    assert WORDS["excesses"](counts, limits) == ["op: 3 docstrings, at most 2", "new: 1 two, at most 0"]
    assert WORDS["excesses"]({"op": {"docstrings": 1, "two": 0}}, limits) == []


@pytest.mark.parametrize(
    ("text", "constructions"),
    [
        ("What is lowered.", ["a clause for a noun", "an opening that continues"]),
        ("Of an empty row, the sum.", ["a part before its whole"]),
        ("Return 0 where there is none.", ["where for if"]),
        ("Nobody reads it.", ["a person for the passive"]),
        ("The size is that of the input.", ["a pronoun for a noun"]),
        ("Take so many rows.", ["so many"]),
        ("The value lies in memory.", ["data as a person"]),
        ("Training goes on.", ["a verb of earlier centuries"]),
        ("Compute it anew.", ["an adverb of earlier centuries"]),
        ("The input is no number.", ["a negated noun"]),
        ("Return the mean of the rows, where rows are counted from 0. Resume if the run was killed.", []),
    ],
)
def test_a_construction_is_found(text, constructions):
    assert WORDS["Text"]("comments", ROOT, 1, text).constructions == constructions


def test_docstrings_comments_and_strings_are_told_from_each_other(tmp_path):
    lines = [
        '"""A module."""',
        "x = 1  # a comment",
        "def f(y):",
        '    """A function."""',
        '    raise ValueError(f"size {y} is wrong", "two words")',
    ]
    (tmp_path / "file.py").write_text("\n".join(lines))
    assert sorted((text.kind, text.line, text.text) for text in WORDS["texts_of"](tmp_path / "file.py")) == [
        ("comments", 2, "a comment"),
        ("docstrings", 1, "A module."),
        ("docstrings", 3, "A function."),
        ("strings", 5, "size x is wrong"),
    ]


def test_every_public_name_has_a_docstring():
    lacking = []
    for names in NAMES.public_groups().values():
        for path, value in names.items():
            if inspect.isclass(value) or inspect.isroutine(value):
                lacking += [] if inspect.getdoc(value) else [path]
            if inspect.isclass(value):
                lacking += [f"{path}.{name}" for name, _, _ in NAMES.methods(value) if not inspect.getdoc(getattr(value, name))]
    assert lacking == []

"""The changelog: the notes of 0.1 are one page, and news fragments have names that towncrier reads."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_notes_of_a_release_are_one_page():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert notes
    assert [note.splitlines()[0] for note in notes if len(note.splitlines()) > 60] == []


def test_news_fragments_are_named_and_short():
    for path in (ROOT / "changelog.d").iterdir():
        if path.name != "README.md":
            assert re.fullmatch(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md", path.name), path.name
            assert 0 < len(path.read_text(encoding="utf-8").splitlines()) <= 5, path.name

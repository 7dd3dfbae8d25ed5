"""The documents as pages: their links lead somewhere, lists have all of them, and what is generated is up to date."""

import functools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md", "benchmarks/*.md", "tests/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)


def prose(path: Path) -> str:
    """The text without code, of blocks or of a line."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def links(path: Path) -> list[tuple[Path, str]]:
    """The files that a document links to, and the headings in them; "" for the whole file."""
    targets = [target.partition("#") for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if "://" not in target]
    return [((path.parent / file).resolve() if file else path, heading) for file, _, heading in targets]


@functools.cache
def anchors(path: Path) -> set[str]:
    """The anchors that a forge gives the headings of a document."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {slug if slug not in slugs[:at] else f"{slug}-{slugs[:at].count(slug)}" for at, slug in enumerate(slugs)}


@pytest.mark.parametrize("document", PAGES)
def test_the_links_of_a_document_lead_to_files_and_to_headings(document):
    for file, heading in links(ROOT / document):
        assert file.is_file(), f"{document} links to {file.relative_to(ROOT)}"
        assert not heading or heading in anchors(file), f"{document} links to {heading} in {file.name}"


def test_links_are_found_with_their_headings(tmp_path):
    page = tmp_path / "page.md"
    lines = ["# A `b`, c", "## Two", "## Two", "[x](#two-1) `[no](gone.md)` [y](other.md#a-b-c) [z](https://example.com)"]
    page.write_text("\n".join([*lines, "```text", "[no](gone.md)", "# no", "```", ""]))
    assert links(page) == [(page, "two-1"), (tmp_path / "other.md", "a-b-c")]
    assert anchors(page) == {"a-b-c", "two", "two-1"}


def test_no_heading_has_a_link_which_the_site_cannot_list():
    for document in PAGES:
        assert not re.findall(r"^#+ .*\]\(.*$", prose(ROOT / document), re.MULTILINE), document


def test_every_document_is_listed_in_a_readme():
    for path in ROOT.glob("docs/**/*.md"):
        lists = [ROOT / "docs/README.md", path.parent / "README.md"]
        assert path == lists[0] or any(path == file for page in lists if page.exists() for file, _ in links(page)), f"nothing lists {path}"


def test_the_list_of_decisions_has_their_numbers_and_titles():
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE)
    pages = sorted(ROOT.glob("docs/decisions/0*.md"))
    assert [(f"# {number}. {title}", name) for number, title, name in rows] == [
        (page.read_text().splitlines()[0], page.name) for page in pages
    ]


def test_the_reference_is_what_the_script_writes(golden):
    for path, text in runpy.run_path(str(ROOT / "docs/generate.py"))["make_reference"]().items():
        golden(ROOT / path, text)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason="the extra docs is not installed")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        "docs",
        "-d",
        tmp_path / "doctrees",
        ".",
        tmp_path / "site",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / "site" / page).with_suffix(".html").exists() for page in PAGES)

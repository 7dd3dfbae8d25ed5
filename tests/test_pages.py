"""The documents as pages: links lead to files and headings, indexes are complete, and the reference can be generated."""

import functools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = runpy.run_path(str(ROOT / "docs/generate.py"))
GENERATED = [*REFERENCE["PAGES"]]
PAGES = sorted(
    name
    for pattern in ("*.md", "changelog.d/README.md", "docs/**/*.md", "src/**/*.md", "benchmarks/*.md", "tests/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts and (name := path.relative_to(ROOT).as_posix()) not in GENERATED
)


@functools.cache
def text_of(path: Path) -> str:
    """Return the text of a document. Generated pages are generated, whether or not `make docs` has written them here."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return REFERENCE["make_page"](name) if name in GENERATED else path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """Return the text without code blocks and inline code."""
    text = re.sub(r"^```.*?^```$", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def links(path: Path) -> list[tuple[Path, str]]:
    """Return the files that a document links to, and the headings in them; "" for the whole file."""
    targets = [target.partition("#") for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if "://" not in target]
    return [((path.parent / file).resolve() if file else path, heading) for file, _, heading in targets]


@functools.cache
def anchors(path: Path) -> set[str]:
    """Return the anchors that a repository host gives the headings of a document."""
    text = re.sub(r"^```.*?^```$", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {slug if slug not in slugs[:at] else f"{slug}-{slugs[:at].count(slug)}" for at, slug in enumerate(slugs)}


@pytest.mark.parametrize("document", PAGES)
def test_the_links_of_a_document_lead_to_files_and_to_headings(document):
    for file, heading in links(ROOT / document):
        assert file.relative_to(ROOT).as_posix() not in GENERATED, f"{document} links to {file.name}, which a clone lacks"
        assert file.is_file(), f"{document} links to {file.relative_to(ROOT)}"
        assert not heading or heading in anchors(file), f"{document} links to {heading} in {file.name}"


@pytest.mark.parametrize("page", GENERATED)
def test_a_generated_page_has_headings_and_links_to_headings(page):
    assert len(anchors(ROOT / page)) > 5
    for file, heading in links(ROOT / page):
        assert file.is_file() or file.relative_to(ROOT).as_posix() in GENERATED, f"{page} links to {file.relative_to(ROOT)}"
        assert not heading or heading in anchors(file), f"{page} links to {heading} in {file.name}"


def test_the_page_of_the_reference_names_the_generated_pages():
    """The site makes links of these names; see docs/conf.py."""
    names = re.findall(r"^\| `(\w+\.md)` \|", (ROOT / "docs/reference/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(f"docs/reference/{name}" for name in names) == sorted(GENERATED)


def test_links_are_found_with_their_headings(tmp_path):
    page = tmp_path / "page.md"
    lines = ["# A `b`, c", "## Two", "## Two", "[x](#two-1) `[no](gone.md)` [y](other.md#a-b-c) [z](https://example.com)"]
    page.write_text("\n".join([*lines, "```text", "[no](gone.md)", "# no", "```", ""]))
    assert links(page) == [(page, "two-1"), (tmp_path / "other.md", "a-b-c")]
    assert anchors(page) == {"a-b-c", "two", "two-1"}


def test_no_heading_has_a_link_which_the_site_cannot_list():
    for document in [*PAGES, *GENERATED]:
        assert not re.findall(r"^#+ .*\]\(.*$", prose(ROOT / document), re.MULTILINE), document


def test_every_document_is_listed_in_a_readme():
    for path in (ROOT / page for page in PAGES if page.startswith("docs/")):
        lists = [ROOT / "docs/README.md", path.parent / "README.md"]
        assert path == lists[0] or any(path == file for page in lists if page.exists() for file, _ in links(page)), f"nothing lists {path}"


def test_the_list_of_decisions_has_their_numbers_and_titles():
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE)
    pages = sorted(ROOT.glob("docs/decisions/0*.md"))
    assert [(f"# {number}. {title}", name) for number, title, name in rows] == [
        (page.read_text().splitlines()[0], page.name) for page in pages
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason="the dependency group docs is not installed")
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
    REFERENCE["write_reference"]()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / "site" / page).with_suffix(".html").exists() for page in [*PAGES, *GENERATED])

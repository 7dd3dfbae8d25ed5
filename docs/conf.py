"""The site of the documents, for Sphinx: `make docs`. Its pages are the Markdown files of the repository, where they lie.

The source folder is the root of the repository, for README.md and its like are pages too, and links from page to page are the same
there and at a forge. docs/decisions/0013-the-documents-as-a-site.md tells why.
"""

import re

from sphinx.application import Sphinx

project = "Oarlock"
html_title = "Oarlock"
html_theme = "furo"
extensions = ["myst_parser"]
include_patterns = [
    "*.md",
    "changelog.d/README.md",
    "docs/*.md",
    "docs/**/*.md",
    "src/oarlock/README.md",
    "src/oarlock/**/README.md",
    "benchmarks/README.md",
    "tests/README.md",
    "examples/node/README.md",
]
exclude_patterns = [".*", "build", "node_modules"]
root_doc = "README"
html_extra_path = ["index.html"]  # leads to README.html
html_copy_source = False
html_use_index = False
html_show_copyright = False
myst_heading_anchors = 6  # the anchors that a forge makes of headings
highlight_language = "none"

# A forge would show these lists as code, so that they stand here and not in README.md.
CONTENTS = {
    "Documents": ["docs/README", "docs/tutorial", "docs/gallery"],
    "Guides": ["docs/guides/*"],
    "Internals": ["docs/internals/*"],
    "Folders": ["src/oarlock/README", "src/oarlock/**/README", "benchmarks/README", "tests/README"],
    "Reference": ["docs/reference/README", "docs/reference/*"],
    "Benchmarks": ["docs/benchmarks/README", "docs/benchmarks/*"],
    "Decisions": ["docs/decisions/README", "docs/decisions/*"],
    "The project": ["CONTRIBUTING", "SECURITY", "CHANGELOG", "changelog.d/README", "examples/node/README"],
}


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the lists of pages to the first page, and links to the generated pages, which the repository does not have, to theirs."""
    if page == "docs/reference/README":
        source[0] = re.sub(r"^\| `(\w+\.md)` \|", r"| [\1](\1) |", source[0], flags=re.MULTILINE)
    if page == root_doc:
        for caption, pages in CONTENTS.items():
            source[0] += "\n".join(["", "```{toctree}", ":hidden:", ":glob:", f":caption: {caption}", "", *pages, "```", ""])


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)

"""Sphinx configuration of the documents' site: `make docs`. The pages are the Markdown files of the repository, at their own paths.

The source folder is the root of the repository, because README.md and others are pages too, and links between pages must be the same
at a repository host. Reasons: docs/decisions/0013-the-documents-as-a-site.md.
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
myst_heading_anchors = 6  # the anchors that repository hosts give headings
highlight_language = "none"

# A repository host would show these lists as code in README.md.
CONTENTS = {
    "Tutorial": ["docs/README", "docs/tutorial", "docs/gallery"],
    "How-to guides": ["docs/guides/how_do_i", "docs/guides/sharp_bits", "docs/guides/*"],
    "Reference": ["docs/reference/README", "docs/reference/*", "docs/benchmarks/README", "docs/benchmarks/*", "docs/scale"],
    "Internals": ["docs/internals/README", "docs/internals/*", "docs/decisions/README", "docs/decisions/*"],
    "Folders": ["src/oarlock/README", "src/oarlock/**/README", "benchmarks/README", "tests/README"],
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

"""Write the generated reference: a page for each area of public names, and pages of operators, layers, optimizers, data sets and errors.

    python docs/generate.py

The pages are written to docs/reference, which git ignores; `make docs` does this before it builds the site. Each page is made by a file of
`reference_pages/`.
"""

import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reference_pages.areas import AREAS, FIRST
from reference_pages.compositions import compositions
from reference_pages.datasets import datasets
from reference_pages.errors import error_classes
from reference_pages.layers import layers
from reference_pages.names import area_page, first_names
from reference_pages.operators import operators
from reference_pages.optimizers import optimizers

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by docs/generate.py. -->"
PAGES: dict[str, Callable[[], Iterator[str]]] = {
    **{f"docs/reference/{name}.md": functools.partial(area_page, name) for name in AREAS},
    "docs/reference/operators.md": lambda: operators(first_names(FIRST["operators"])),
    "docs/reference/compositions.md": lambda: compositions(first_names(FIRST["compositions"])),
    "docs/reference/layers.md": lambda: layers(first_names(FIRST["layers"])),
    "docs/reference/optimizers.md": optimizers,
    "docs/reference/datasets.md": datasets,
    "docs/reference/errors.md": error_classes,
}
"""The functions that give the lines of each page, by its path in the repository."""


def make_page(path: str) -> str:
    """Return the text of a generated page."""
    text = "\n".join([NOTE, "", *PAGES[path]()]).rstrip() + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


def write_reference() -> None:
    for path in PAGES:
        (ROOT / path).write_text(make_page(path), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_reference()

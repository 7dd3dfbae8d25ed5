"""The generated reference: pages of the operators, layers, optimizers, data sets, errors and names that the package declares.

    python docs/generate.py

It stands beside what it writes, for it is no part of the package and no test; tests/test_pages.py says when what is checked in is not what
it would write. Each page has a file in `reference_pages/`, whose function gives its lines.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reference_pages.compositions import compositions
from reference_pages.datasets import datasets
from reference_pages.errors import error_classes
from reference_pages.layers import layers
from reference_pages.names import public_names
from reference_pages.operators import operators
from reference_pages.optimizers import optimizers

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Written by docs/generate.py: change what it reads, then `make docs`. -->"


def make_reference() -> dict[str, str]:
    """The text of each generated file, by its path in the repository."""
    made = {
        "operators": operators(),
        "compositions": compositions(),
        "layers": layers(),
        "optimizers": optimizers(),
        "datasets": datasets(),
        "errors": error_classes(),
        "api": public_names(),
    }
    texts = {name: "\n".join([MADE, "", *lines]).rstrip() + "\n" for name, lines in made.items()}
    return {f"docs/reference/{name}.md": re.sub(r"\n{3,}", "\n\n", text) for name, text in texts.items()}


if __name__ == "__main__":
    for path, text in make_reference().items():
        (ROOT / path).write_text(text, encoding="utf-8", newline="\n")

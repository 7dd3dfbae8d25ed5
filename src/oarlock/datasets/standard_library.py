"""The source of Python's standard library as characters: about five million, available wherever Python runs.

It is the source of the running Python, so the rows depend on its version. Characters outside ASCII are read as question marks.
"""

import argparse
import ast
from collections.abc import Sequence
from pathlib import Path

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.text import Vocabulary, windows
from oarlock.errors import DataError

__all__ = ["docstrings", "load", "split", "vocabulary"]

DESCRIPTION = Description(
    columns={"ids": "int64[n, 64]", "next": "int64[n, 64]"},
    source="the single-file modules of the installed Python standard library",
    licence="Python Software Foundation License",
)

vocabulary = Vocabulary("".join(map(chr, range(128))))
"""ASCII: the number of a character is its code."""


def load(*, length: int = 64, files: int | None = None) -> dict[str, numpy.ndarray]:
    """Return the modules in order of name, in windows: ids int64[n, length], and next int64[n, length], the following character of each.

    `files` is the maximal number of modules. Raises ArgumentError for an invalid length, and DataError if Python was installed without its
    source.
    """
    return windows(_read(_paths(files)), length)


def split(seed: int = 0, *, length: int = 64, files: int | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the modules for training, and every eighth module for testing; `seed` is ignored. The other arguments are as in `load`."""
    paths = _paths(files)
    return windows(_read([path for number, path in enumerate(paths) if number % 8]), length), windows(_read(paths[::8]), length)


def docstrings(*, files: int | None = None) -> list[str]:
    """Return the docstrings of the modules, their classes and functions, in traversal order. `files` and errors are as in `load`."""
    found = []
    for path in _paths(files):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found.append(ast.get_docstring(node) or "")
    return [text for text in found if text]


def _paths(files: int | None) -> list[Path]:
    paths = sorted(Path(argparse.__file__).parent.glob("*.py"))[:files]
    if not paths:
        raise DataError("this Python was installed without the source of its standard library")
    return paths


def _read(paths: Sequence[Path]) -> numpy.ndarray:
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return numpy.frombuffer(text.encode("ascii", "replace"), dtype="uint8").astype("int64")

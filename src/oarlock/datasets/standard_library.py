"""The source of Python's standard library, character by character: some five million of them, on every machine that runs Python.

It is that of the Python which runs, so that another version has other rows. Characters outside ASCII are read as question marks.
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
    source="the modules of Python's standard library that are files of their own, as they are installed",
    licence="Python Software Foundation License",
)

vocabulary = Vocabulary("".join(map(chr, range(128))))
"""ASCII: the number of a character is its code."""


def load(*, length: int = 64, files: int | None = None) -> dict[str, numpy.ndarray]:
    """The modules one after another, by name, in windows: ids int64[n, length], and next int64[n, length], the character after each.

    `files` is how many modules are read at most. Raises ArgumentError for a length that is no length, and DataError where Python was
    installed without its source.
    """
    return windows(_read(_paths(files)), length)


def split(seed: int = 0, *, length: int = 64, files: int | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """The modules to train on, and one in eight to test on, whole, whatever `seed`; otherwise as `load`."""
    paths = _paths(files)
    return windows(_read([path for number, path in enumerate(paths) if number % 8]), length), windows(_read(paths[::8]), length)


def docstrings(*, files: int | None = None) -> list[str]:
    """The docstrings of the modules, of their classes and functions, in the order in which they are met. As `load`."""
    found = []
    for path in _paths(files):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found.append(ast.get_docstring(node) or "")
    return [text for text in found if text]


def _paths(files: int | None) -> list[Path]:
    paths = sorted(Path(argparse.__file__).parent.glob("*.py"))[:files]
    if not paths:
        raise DataError("the standard library of this Python is there without its source")
    return paths


def _read(paths: Sequence[Path]) -> numpy.ndarray:
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return numpy.frombuffer(text.encode("ascii", "replace"), dtype="uint8").astype("int64")

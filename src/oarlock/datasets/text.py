"""Text as character numbers: a vocabulary, windows of a text, Shakespeare, and the source of Python's standard library."""

import argparse
import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy

from oarlock.datasets.data_set import DataSet, Description, Rows
from oarlock.datasets.remote import RemoteFiles
from oarlock.errors import ArgumentError, DataError

__all__ = ["Vocabulary", "shakespeare", "standard_library", "windows"]


@dataclass(frozen=True)
class Vocabulary:
    """Characters numbered from 0 in the order of `characters`."""

    characters: str

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> numpy.ndarray:
        """Return the numbers of the characters of a text, int64[n]. Raises ArgumentError for an unknown character."""
        codes = numpy.frombuffer(text.encode("utf-32-le"), "<u4")
        places = numpy.minimum(numpy.searchsorted(self._codes, codes), len(self) - 1)
        unknown = numpy.flatnonzero(self._codes[places] != codes)
        if unknown.size:
            raise ArgumentError(f"{text[unknown[0]]!r} is not one of the {len(self)} characters of the vocabulary")
        return self._numbers[places]

    def decode(self, ids: numpy.ndarray) -> str:
        """Return the text of character numbers, integer[n]. Raises ArgumentError for a number outside the vocabulary."""
        found = numpy.asarray(ids)
        if found.size and not 0 <= found.min() <= found.max() < len(self):
            raise ArgumentError(f"a vocabulary of {len(self)} characters has the numbers 0 to {len(self) - 1}")
        return "".join(self.characters[number] for number in found.tolist())

    @cached_property
    def _numbers(self) -> numpy.ndarray:
        return numpy.argsort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4")).astype("int64")

    @cached_property
    def _codes(self) -> numpy.ndarray:
        return numpy.sort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4"))


def windows(ids: numpy.ndarray, length: int) -> Rows:
    """Return a text in consecutive windows: ids int64[n, length], and next int64[n, length], the following character of each.

    The remainder at the end is dropped. Raises ArgumentError for a length below 1 or longer than the text.
    """
    if not 1 <= length < len(ids):
        raise ArgumentError(f"a text of {len(ids)} characters has no windows of {length}")
    count = (len(ids) - 1) // length
    return {name: ids[start : start + count * length].reshape(count, length) for start, name in enumerate(("ids", "next"))}


_INPUT = "input.txt"


class Shakespeare(DataSet):
    """Tiny Shakespeare: 40,000 lines of his plays, 1,115,394 characters of 65 kinds (A. Karpathy, 2015), one file, downloaded once."""

    name = "shakespeare"
    DESCRIPTION = Description(
        columns={"ids": "int64[n, 64]", "next": "int64[n, 64]"},
        rows={"train": 15_685, "test": 1_742, "all": 17_428},
        source="plays of W. Shakespeare, compiled by A. Karpathy, 2015: char-rnn",
        licence="the plays are in the public domain; the repository of the file has the MIT licence",
    )
    FILES = RemoteFiles(
        "Tiny Shakespeare",
        "shakespeare",
        ("https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare",),
        {_INPUT: (1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")},
    )
    vocabulary = Vocabulary("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    """The 65 characters that occur, in the order of their codes."""

    def load(self, path: str | Path | None = None, *, length: int = 64) -> Rows:
        """Return the text in windows: ids int64[n, length], and next int64[n, length], the following character of each.

        `path` is the file, input.txt, or a folder that contains it; nothing is downloaded then. Otherwise the file is downloaded by pooch
        into the user's cache unless it is there already. Its SHA-256 is verified. Raises DataError if the file is missing, cannot be
        downloaded, or has another SHA-256, ReadError if it cannot be read, ArgumentError for an invalid length.
        """
        return windows(self._read(path), length)

    def split(self, seed: int = 0, *, path: str | Path | None = None, length: int = 64) -> tuple[Rows, Rows]:
        """Return the first 90 % for training and the rest for testing; `seed` is ignored. The other arguments are as in `load`."""
        ids = self._read(path)
        cut = len(ids) * 9 // 10
        return windows(ids[:cut], length), windows(ids[cut:], length)

    def _read(self, path: str | Path | None) -> numpy.ndarray:
        return self.vocabulary.encode(self.FILES.read(_INPUT, path).decode("ascii"))


class StandardLibrary(DataSet):
    """The source of Python's standard library as characters: about five million, available wherever Python runs.

    It is the source of the running Python, so the rows depend on its version. Characters outside ASCII are read as question marks.
    """

    name = "standard_library"
    DESCRIPTION = Description(
        columns={"ids": "int64[n, 64]", "next": "int64[n, 64]"},
        source="the single-file modules of the installed Python standard library",
        licence="Python Software Foundation License",
    )
    vocabulary = Vocabulary("".join(map(chr, range(128))))
    """ASCII: the number of a character is its code."""

    def load(self, *, length: int = 64, files: int | None = None) -> Rows:
        """Return the modules by name, in windows: ids int64[n, length], and next int64[n, length], the following character of each.

        `files` is the maximal number of modules. Raises ArgumentError for an invalid length, and DataError if Python was installed without
        its source.
        """
        return windows(_read_sources(_source_paths(files)), length)

    def split(self, seed: int = 0, *, length: int = 64, files: int | None = None) -> tuple[Rows, Rows]:
        """Return the modules for training, and every eighth module for testing; `seed` is ignored. The other arguments are as in `load`."""
        paths = _source_paths(files)
        train = [path for number, path in enumerate(paths) if number % 8]
        return windows(_read_sources(train), length), windows(_read_sources(paths[::8]), length)

    def docstrings(self, *, files: int | None = None) -> list[str]:
        """Return the docstrings of the modules, their classes and functions, in traversal order. `files` and errors are as in `load`."""
        found = []
        for path in _source_paths(files):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    found.append(ast.get_docstring(node) or "")
        return [text for text in found if text]


def _source_paths(files: int | None) -> list[Path]:
    paths = sorted(Path(argparse.__file__).parent.glob("*.py"))[:files]
    if not paths:
        raise DataError("this Python was installed without the source of its standard library")
    return paths


def _read_sources(paths: Sequence[Path]) -> numpy.ndarray:
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return numpy.frombuffer(text.encode("ascii", "replace"), dtype="uint8").astype("int64")


shakespeare, standard_library = Shakespeare(), StandardLibrary()

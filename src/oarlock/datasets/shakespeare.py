"""Tiny Shakespeare: 40,000 lines of his plays, 1,115,394 characters of 65 kinds (A. Karpathy, 2015), one file, downloaded once."""

from pathlib import Path

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.remote import RemoteFiles
from oarlock.datasets.text import Vocabulary, windows

__all__ = ["load", "split", "vocabulary"]

DESCRIPTION = Description(
    columns={"ids": "int64[n, 64]", "next": "int64[n, 64]"},
    rows={"train": 15_685, "test": 1_742, "all": 17_428},
    source="plays of W. Shakespeare, compiled by A. Karpathy, 2015: char-rnn",
    licence="the plays are in the public domain; the repository of the file has the MIT licence",
)
_NAME = "input.txt"
FILES = RemoteFiles(
    "Tiny Shakespeare",
    "shakespeare",
    ("https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare",),
    {_NAME: (1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")},
)

vocabulary = Vocabulary("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""The 65 characters that occur, in the order of their codes."""


def load(path: str | Path | None = None, *, length: int = 64) -> dict[str, numpy.ndarray]:
    """Return the text in windows: ids int64[n, length], and next int64[n, length], the following character of each.

    `path` is the file, input.txt, or a folder that contains it; nothing is downloaded then. Otherwise the file is downloaded by pooch into
    the user's cache unless it is there already. Its SHA-256 is verified. Raises DataError if the file is missing, cannot be downloaded, or
    has another SHA-256, ReadError if it cannot be read, ArgumentError for an invalid length.
    """
    return windows(_read(path), length)


def split(seed: int = 0, *, path: str | Path | None = None, length: int = 64) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 90 % for training and the rest for testing; `seed` is ignored. The other arguments are as in `load`."""
    ids = _read(path)
    cut = len(ids) * 9 // 10
    return windows(ids[:cut], length), windows(ids[cut:], length)


def _read(path: str | Path | None) -> numpy.ndarray:
    return vocabulary.encode(FILES.read(_NAME, path).decode("ascii"))

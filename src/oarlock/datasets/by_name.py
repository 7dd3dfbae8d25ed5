"""A data set by its name, as a command line gives it."""

from collections.abc import Sequence
from pathlib import Path

import numpy

from oarlock.data.recognition import FILES, read
from oarlock.data.selection import parse_columns
from oarlock.data.source import Source
from oarlock.data.table import Table
from oarlock.datasets import digits, mnist
from oarlock.errors import DataError

__all__ = ["load", "open_source"]

_SETS = {"digits": digits, "mnist": mnist}
_PARTS = ("train", "test", "all")


def load(name: str, *, seed: int = 0, columns: Sequence[str] = ()) -> dict[str, numpy.ndarray]:
    """The columns of a data set, whole. As `open_source`."""
    table = open_source(name, seed=seed, columns=columns).rows
    assert isinstance(table, Table)
    return table.whole()  # type: ignore[return-value]


def open_source(name: str, *, seed: int = 0, columns: Sequence[str] = ()) -> Source:
    """The rows of `digits:train`, `digits:test`, `digits:all`, of `mnist` likewise, or of a file or a folder that `ol.data.read` reads.

    `seed` draws the parts. `columns` picks some, such as "x=first:last" and "label=kind" (`parse_columns`). A file is read without running
    anything that it holds. Raises DataError, ArgumentError or FeedError.
    """
    return read(_find(name, seed), columns=parse_columns(columns))


def _find(name: str, seed: int) -> object:
    if name.endswith(tuple(FILES)) or Path(name).is_dir():
        return name
    stem, _, part = name.partition(":")
    if stem not in _SETS or part not in ("", *_PARTS):
        named = ", ".join(f"{known}:{part}" for known in _SETS for part in _PARTS)
        raise DataError(
            f'there is no data set "{name}"', contract=f"one of {named}, a folder of images, or a file that ends with {', '.join(FILES)}"
        )
    if part in ("", "all"):
        return _SETS[stem].load()
    train, test = _SETS[stem].split(seed=seed)
    return train if part == "train" else test

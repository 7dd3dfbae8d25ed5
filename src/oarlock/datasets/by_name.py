"""Data sets by name, as on a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy

from oarlock.data.recognition import FILES, open_data, read
from oarlock.data.selection import in_known_order, parse_columns, part_of
from oarlock.data.source import Source
from oarlock.data.table import Table
from oarlock.datasets.cifar10 import cifar10
from oarlock.datasets.data_set import DataSet, Description, GeneratedDataSet
from oarlock.datasets.generated import addition, copying, moons, sorting, spirals, waves
from oarlock.datasets.mnist import fashion_mnist, mnist
from oarlock.datasets.scikit_learn import breast_cancer, diabetes, digits, iris, sample_images, wine
from oarlock.datasets.text import shakespeare, standard_library
from oarlock.errors import DataError
from oarlock.suggestions import did_you_mean

__all__ = ["GROUPS", "descriptions", "load", "open_source"]

GROUPS: dict[str, tuple[DataSet, ...]] = {
    "installed with scikit-learn": (digits, iris, wine, breast_cancer, diabetes, sample_images),
    "installed with Python": (standard_library,),
    "downloaded once": (mnist, fashion_mnist, cifar10, shakespeare),
    "generated from a seed": (copying, addition, sorting, moons, spirals, waves),
}
"""The data sets by origin."""

_SETS = {data_set.name: data_set for group in GROUPS.values() for data_set in group}
_PARTS = ("train", "test", "all")


def descriptions() -> dict[str, Description]:
    """Return the description of each data set by name: contents, source and licence."""
    return {name: data_set.DESCRIPTION for name, data_set in _SETS.items()}


def load(name: str, *, seed: int = 0, columns: Sequence[str] = ()) -> dict[str, numpy.ndarray]:
    """Return the columns of a data set as arrays with the rows first.

    `name` is `iris:train` for training rows, `iris:test` for test rows, and `iris:all` or `iris` for all rows; `descriptions()` has the
    names. It may also be the path of a file or folder, as for `ol.data.read`. `seed` determines the split and generated data. `columns`
    selects columns, such as "x=first:last" and "label=kind". Raises DataError, ArgumentError or FeedError.
    """
    table = open_source(name, seed=seed, columns=columns).rows
    assert isinstance(table, Table)
    return table.whole()  # type: ignore[return-value]


def open_source(
    name: str, *, seed: int = 0, columns: Sequence[str] = (), known: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Source:
    """Open the rows of `iris:train`, `iris:test`, `iris:all`, of another data set, or of a file or folder for `ol.data.read`.

    `table.csv:train` selects a random 80 % of the rows of a file, `table.csv:test` the others. `seed` determines the split and generated
    data. `columns` selects columns, such as "x=first:last" and "label=kind" (`parse_columns`); `known` are the columns that a model was
    previously fed from (`in_known_order`). Files are read without running code in them. Raises DataError, ArgumentError or FeedError.
    """
    found, given = _find(name, seed), parse_columns(columns)
    if known:
        found = open_data(found)
        given = in_known_order(given, known, found.rows.names) if isinstance(found.rows, Table) else given
    return read(found, columns=given)


def _find(name: str, seed: int) -> object:
    if name.endswith(tuple(FILES)) or Path(name).is_dir():
        return name
    stem, _, part = name.rpartition(":") if ":" in name else (name, "", "")
    if part in _PARTS and (stem.endswith(tuple(FILES)) or Path(stem).is_dir()):
        source = open_data(stem)
        assert isinstance(source.rows, Table)
        return replace(source, rows=part_of(source.rows, part, seed))
    data_set = _SETS.get(stem)
    if data_set is None or part not in ("", *_PARTS):
        raise DataError(
            f'there is no data set "{name}"',
            contract=f"one of {', '.join(_SETS)}, optionally with :train, :test or :all; a folder of images; or a file that ends with "
            f"{', '.join(FILES)}, optionally with :train or :test",
            hint=(did_you_mean(stem, _SETS) if data_set is None else None) or "list them: oarlock datasets",
        )
    if part in ("", "all"):
        return data_set.load(seed=seed) if isinstance(data_set, GeneratedDataSet) else data_set.load()
    split = getattr(data_set, "split", None)
    if split is None:
        raise DataError(f"{stem} is not divided into training and test rows", hint=f"use {stem}:all")
    if hasattr(data_set, part):  # without reading the other part
        return getattr(data_set, part)()
    train, test = split(seed=seed)
    return train if part == "train" else test

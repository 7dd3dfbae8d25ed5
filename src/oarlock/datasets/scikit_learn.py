"""Data sets that scikit-learn ships, and rows divided in two."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy

from oarlock.errors import DataError

__all__ = ["load_bundled", "split_rows"]


def load_bundled(what: str, loader: str, **options: object) -> Any:
    """The value of `sklearn.datasets.LOADER(**options)`. `what` is the subject of the error.

    Raises DataError where scikit-learn is not installed.
    """
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise DataError(f"{what} with scikit-learn, which is not installed", hint='pip install "oarlock[datasets]"') from None
    return getattr(datasets, loader)(**options)


def split_rows(
    data: Mapping[str, numpy.ndarray], seed: int, *, stratify: str | None = None
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths of the rows and one fifth, drawn by `seed`; each with the same share of every value of the column `stratify`."""
    from sklearn.model_selection import train_test_split

    count = len(next(iter(data.values())))
    kinds = None if stratify is None else data[stratify]
    train, test = train_test_split(numpy.arange(count), test_size=0.2, random_state=seed % 2**32, stratify=kinds)
    return {name: column[train] for name, column in data.items()}, {name: column[test] for name, column in data.items()}

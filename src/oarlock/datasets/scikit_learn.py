"""Data sets that are part of scikit-learn, and random splits of rows."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy

from oarlock.errors import DataError

__all__ = ["load_bundled", "split_rows"]


def load_bundled(subject: str, loader: str, **options: object) -> Any:
    """Return `sklearn.datasets.LOADER(**options)`. `subject` begins the error message.

    Raises DataError if scikit-learn is not installed.
    """
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise DataError(f"{subject} with scikit-learn, which is not installed", hint='pip install "oarlock[datasets]"') from None
    return getattr(datasets, loader)(**options)


def split_rows(
    data: Mapping[str, numpy.ndarray], seed: int, *, stratify: str | None = None
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % and 20 % of the rows, drawn by `seed` and stratified by the column `stratify` if given."""
    from sklearn.model_selection import train_test_split

    count = len(next(iter(data.values())))
    kinds = None if stratify is None else data[stratify]
    train, test = train_test_split(numpy.arange(count), test_size=0.2, random_state=seed % 2**32, stratify=kinds)
    return {name: column[train] for name, column in data.items()}, {name: column[test] for name, column in data.items()}

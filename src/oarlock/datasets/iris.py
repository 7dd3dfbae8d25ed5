"""Iris: 150 flowers of three species with four measurements (R. A. Fisher, 1936).

It is part of scikit-learn; nothing is downloaded.
"""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled, split_rows

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 4]", "label": "int64[n]"},
    rows={"train": 120, "test": 30, "all": 150},
    features=("sepal length", "sepal width", "petal length", "petal width"),
    classes=("setosa", "versicolor", "virginica"),
    source="R. A. Fisher, 1936: The use of multiple measurements in taxonomic problems; UCI, with scikit-learn",
    licence="CC BY 4.0",
)


def load() -> dict[str, numpy.ndarray]:
    """Return all rows: x float32[150, 4] in cm, label int64[150], 50 of each species.

    Raises DataError if scikit-learn is not installed.
    """
    x, label = load_bundled("the flowers come", "load_iris", return_X_y=True)
    return {"x": x.astype("float32"), "label": label.astype("int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % of the rows for training and 20 % for testing, stratified by label and drawn by `seed`."""
    return split_rows(load(), seed, stratify="label")

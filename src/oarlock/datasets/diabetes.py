"""Diabetes: 442 patients with ten measurements and the disease progression after a year (B. Efron et al., 2004).

It is part of scikit-learn; nothing is downloaded.
"""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled, split_rows

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 10]", "y": "float32[n, 1]"},
    rows={"train": 353, "test": 89, "all": 442},
    features=("age", "sex", "body mass index", "blood pressure", *(f"serum {number}" for number in range(1, 7))),
    source="B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, 2004: Least angle regression; with scikit-learn",
    licence="none stated; published with the paper and distributed with scikit-learn (BSD)",
)


def load() -> dict[str, numpy.ndarray]:
    """Return all rows: x float32[442, 10] unscaled, y float32[442, 1] from 25 to 346.

    Raises DataError if scikit-learn is not installed.
    """
    x, y = load_bundled("the patients come", "load_diabetes", return_X_y=True, scaled=False)
    return {"x": x.astype("float32"), "y": y.astype("float32")[:, None]}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % of the rows for training and 20 % for testing, drawn by `seed`."""
    return split_rows(load(), seed)

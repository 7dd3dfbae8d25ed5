"""Diabetes: 442 patients, ten numbers about each, and how far the disease got in a year (B. Efron et al., 2004).

scikit-learn ships them; nothing is downloaded.
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
    licence="none is stated; published with the paper, and shipped by scikit-learn (BSD)",
)


def load() -> dict[str, numpy.ndarray]:
    """All of them: x float32[442, 10] in units of their own, y float32[442, 1] from 25 to 346.

    Raises DataError where scikit-learn is not installed.
    """
    x, y = load_bundled("the patients come", "load_diabetes", return_X_y=True, scaled=False)
    return {"x": x.astype("float32"), "y": y.astype("float32")[:, None]}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths to train on and one fifth to test on. `seed` draws them."""
    return split_rows(load(), seed)

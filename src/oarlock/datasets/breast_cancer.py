"""Breast cancer: 569 tumours, malignant or benign, with thirty measurements of cell nuclei (W. Wolberg et al., 1993).

It is part of scikit-learn; nothing is downloaded.
"""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled, split_rows

__all__ = ["load", "split"]

_MEASURED = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)

DESCRIPTION = Description(
    columns={"x": "float32[n, 30]", "label": "int64[n]"},
    rows={"train": 455, "test": 114, "all": 569},
    features=tuple(form.format(name) for form in ("mean {}", "{} error", "worst {}") for name in _MEASURED),
    classes=("malignant", "benign"),
    source="W. Wolberg, O. Mangasarian, N. Street and W. Street, 1993: Breast Cancer Wisconsin (Diagnostic), UCI; with scikit-learn",
    licence="CC BY 4.0",
)


def load() -> dict[str, numpy.ndarray]:
    """Return all rows: x float32[569, 30] unscaled, from thousandths to thousands; label int64[569], 0 malignant, 1 benign.

    Raises DataError if scikit-learn is not installed.
    """
    x, label = load_bundled("the tumours come", "load_breast_cancer", return_X_y=True)
    return {"x": x.astype("float32"), "label": label.astype("int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % of the rows for training and 20 % for testing, stratified by label and drawn by `seed`."""
    return split_rows(load(), seed, stratify="label")

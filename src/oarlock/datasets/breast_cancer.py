"""Breast cancer: 569 tumours, malignant or benign, by thirty measurements of cell nuclei (W. Wolberg et al., 1993).

scikit-learn ships them; nothing is downloaded.
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
    """All of them: x float32[569, 30] in units of their own, from thousandths to thousands; label int64[569], 0 malignant, 1 benign.

    Raises DataError where scikit-learn is not installed.
    """
    x, label = load_bundled("the tumours come", "load_breast_cancer", return_X_y=True)
    return {"x": x.astype("float32"), "label": label.astype("int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths to train on and one fifth to test on, each with the same share of both kinds. `seed` draws them."""
    return split_rows(load(), seed, stratify="label")

"""Wine: 178 wines of three cultivars with thirteen measurements (S. Aeberhard and M. Forina, 1991).

It is part of scikit-learn; nothing is downloaded.
"""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled, split_rows

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 13]", "label": "int64[n]"},
    rows={"train": 142, "test": 36, "all": 178},
    features=(
        "alcohol",
        "malic acid",
        "ash",
        "alcalinity of ash",
        "magnesium",
        "total phenols",
        "flavanoids",
        "nonflavanoid phenols",
        "proanthocyanins",
        "color intensity",
        "hue",
        "OD280/OD315 of diluted wines",
        "proline",
    ),
    classes=("cultivar 0", "cultivar 1", "cultivar 2"),
    source="S. Aeberhard and M. Forina, 1991: Wine, UCI; with scikit-learn",
    licence="CC BY 4.0",
)


def load() -> dict[str, numpy.ndarray]:
    """Return all rows: x float32[178, 13] unscaled, from tenths to more than a thousand; label int64[178].

    Raises DataError if scikit-learn is not installed.
    """
    x, label = load_bundled("the wines come", "load_wine", return_X_y=True)
    return {"x": x.astype("float32"), "label": label.astype("int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % of the rows for training and 20 % for testing, stratified by label and drawn by `seed`."""
    return split_rows(load(), seed, stratify="label")

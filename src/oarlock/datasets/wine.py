"""Wine: 178 wines of three cultivars, told apart by thirteen measurements (S. Aeberhard and M. Forina, 1991).

scikit-learn ships them; nothing is downloaded.
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
    """All of them: x float32[178, 13] in units of their own, from tenths to more than a thousand; label int64[178].

    Raises DataError where scikit-learn is not installed.
    """
    x, label = load_bundled("the wines come", "load_wine", return_X_y=True)
    return {"x": x.astype("float32"), "label": label.astype("int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths to train on and one fifth to test on, each with the same share of every cultivar. `seed` draws them."""
    return split_rows(load(), seed, stratify="label")

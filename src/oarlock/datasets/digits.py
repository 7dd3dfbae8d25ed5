"""Handwritten digits: 1,797 images of 8 by 8 pixels (E. Alpaydin and C. Kaynak, 1998).

They are the test set of the UCI collection "Optical Recognition of Handwritten Digits" and part of scikit-learn; nothing is downloaded.
"""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled, split_rows

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"image": "float32[n, 1, 8, 8]", "label": "int64[n]"},
    rows={"train": 1437, "test": 360, "all": 1797},
    classes=tuple("0123456789"),
    source="E. Alpaydin and C. Kaynak, 1998: Optical Recognition of Handwritten Digits, UCI; with scikit-learn",
    licence="CC BY 4.0",
)


def load() -> dict[str, numpy.ndarray]:
    """Return all rows: image float32[1797, 1, 8, 8] from 0 (paper) to 1 (ink), label int64[1797].

    Raises DataError if scikit-learn is not installed.
    """
    pixels, label = load_bundled("the digits come", "load_digits", return_X_y=True)  # [1797, 64] from 0 to 16
    image = (numpy.reshape(pixels, (-1, 1, 8, 8)) / 16.0).astype("float32")
    return {"image": image, "label": numpy.asarray(label, dtype="int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return a random 80 % of the rows for training and 20 % for testing, stratified by label and drawn by `seed`."""
    return split_rows(load(), seed, stratify="label")

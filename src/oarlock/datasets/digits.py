"""Handwritten digits, 8 by 8 pixels: 1,797 real ones, which scikit-learn ships.

They are the test set of the UCI collection "Optical Recognition of Handwritten Digits" (E. Alpaydin and
C. Kaynak, 1998). Nothing is downloaded.
"""

import numpy

from oarlock.errors import DataError

__all__ = ["load", "split"]


def load() -> dict[str, numpy.ndarray]:
    """All of them: image float32[1797, 1, 8, 8] from 0 (paper) to 1 (ink), label int64[1797].

    Raises DataError where scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError("the digits come with scikit-learn, which is not installed", hint='pip install "oarlock[datasets]"') from None
    pixels, label = load_digits(return_X_y=True)  # [1797, 64] from 0 to 16
    image = (numpy.reshape(pixels, (-1, 1, 8, 8)) / 16.0).astype("float32")
    return {"image": image, "label": numpy.asarray(label, dtype="int64")}


def split(seed: int = 0) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths to train on and one fifth to test on, each with the same share of every digit. `seed` draws them."""
    data = load()
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(numpy.arange(len(data["label"])), test_size=0.2, random_state=seed % 2**32, stratify=data["label"])
    return {name: array[train] for name, array in data.items()}, {name: array[test] for name, array in data.items()}

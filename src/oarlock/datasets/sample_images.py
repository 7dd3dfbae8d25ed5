"""Sample images: two color photographs, a temple in China and a flower, 427 by 640 pixels, part of scikit-learn."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.scikit_learn import load_bundled
from oarlock.errors import DataError

__all__ = ["load"]

DESCRIPTION = Description(
    columns={"image": "float32[n, 3, 427, 640]"},
    rows={"all": 2},
    source="china.jpg by danielbuechele, flower.jpg by vultilion; with scikit-learn",
    licence="CC BY 2.0",
)


def load() -> dict[str, numpy.ndarray]:
    """Return both: image float32[2, 3, 427, 640], red, green and blue from 0 to 1. They are not divided into training and test rows.

    Raises DataError if scikit-learn is not installed, or Pillow, which decodes them.
    """
    try:
        images = load_bundled("the photographs come", "load_sample_images").images
    except ImportError:
        raise DataError("the photographs need Pillow, which is not installed", hint='pip install "oarlock[images]"') from None
    return {"image": (numpy.stack(images).transpose(0, 3, 1, 2) / numpy.float32(255)).astype("float32")}

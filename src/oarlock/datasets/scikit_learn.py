"""The data sets of scikit-learn: digits, iris, wine, breast cancer, diabetes and two photographs. Nothing is downloaded."""

import importlib
from typing import Any, ClassVar

import numpy

from oarlock.datasets.data_set import DataSet, Description, Rows
from oarlock.errors import DataError

__all__ = ["breast_cancer", "diabetes", "digits", "iris", "sample_images", "wine"]


def _load(subject: str, loader: str, **options: object) -> Any:
    """Return `sklearn.datasets.LOADER(**options)`. Raises DataError, which begins with `subject`, if scikit-learn is not installed."""
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise DataError(f"{subject} with scikit-learn, which is not installed", hint='pip install "oarlock[datasets]"') from None
    return getattr(datasets, loader)(**options)


class ScikitLearnDataSet(DataSet):
    """A data set of scikit-learn with a column `x` or `image`, and a column `label` or `y`."""

    _subject: ClassVar[str]

    def load(self) -> Rows:
        """Return all rows. Raises DataError if scikit-learn is not installed."""
        x, label = self._arrays()
        return {"x": x.astype("float32"), "label": label.astype("int64")}

    def _arrays(self, **options: object) -> tuple[numpy.ndarray, numpy.ndarray]:
        return _load(self._subject, f"load_{self.name}", return_X_y=True, **options)

    def split(self, seed: int = 0) -> tuple[Rows, Rows]:
        """Return a random 80 % of the rows for training and 20 % for testing, drawn by `seed` and stratified by label if there is one."""
        data = self.load()
        from sklearn.model_selection import train_test_split

        count = len(next(iter(data.values())))
        train, test = train_test_split(numpy.arange(count), test_size=0.2, random_state=seed % 2**32, stratify=data.get("label"))
        return {name: column[train] for name, column in data.items()}, {name: column[test] for name, column in data.items()}


class Digits(ScikitLearnDataSet):
    """Handwritten digits: 1,797 images of 8 by 8 pixels (E. Alpaydin and C. Kaynak, 1998).

    They are the test set of the UCI collection "Optical Recognition of Handwritten Digits" and part of scikit-learn; nothing is downloaded.
    `image` is from 0 (paper) to 1 (ink).
    """

    name = "digits"
    DESCRIPTION = Description(
        columns={"image": "float32[n, 1, 8, 8]", "label": "int64[n]"},
        rows={"train": 1437, "test": 360, "all": 1797},
        classes=tuple("0123456789"),
        source="E. Alpaydin and C. Kaynak, 1998: Optical Recognition of Handwritten Digits, UCI; with scikit-learn",
        licence="CC BY 4.0",
    )
    _subject = "the digits come"

    def load(self) -> Rows:
        """Return all rows. Raises DataError if scikit-learn is not installed."""
        pixels, label = self._arrays()  # [1797, 64] from 0 to 16
        image = (numpy.reshape(pixels, (-1, 1, 8, 8)) / 16.0).astype("float32")
        return {"image": image, "label": numpy.asarray(label, dtype="int64")}


class Iris(ScikitLearnDataSet):
    """Iris: 150 flowers of three species with four measurements (R. A. Fisher, 1936).

    It is part of scikit-learn; nothing is downloaded. `x` is in cm, and there are 50 flowers of each species.
    """

    name = "iris"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 4]", "label": "int64[n]"},
        rows={"train": 120, "test": 30, "all": 150},
        features=("sepal length", "sepal width", "petal length", "petal width"),
        classes=("setosa", "versicolor", "virginica"),
        source="R. A. Fisher, 1936: The use of multiple measurements in taxonomic problems; UCI, with scikit-learn",
        licence="CC BY 4.0",
    )
    _subject = "the flowers come"


class Wine(ScikitLearnDataSet):
    """Wine: 178 wines of three cultivars with thirteen measurements (S. Aeberhard and M. Forina, 1991).

    It is part of scikit-learn; nothing is downloaded. `x` is unscaled, from tenths to more than a thousand.
    """

    name = "wine"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 13]", "label": "int64[n]"},
        rows={"train": 142, "test": 36, "all": 178},
        features=(
            *("alcohol", "malic acid", "ash", "alcalinity of ash", "magnesium", "total phenols", "flavanoids", "nonflavanoid phenols"),
            *("proanthocyanins", "color intensity", "hue", "OD280/OD315 of diluted wines", "proline"),
        ),
        classes=("cultivar 0", "cultivar 1", "cultivar 2"),
        source="S. Aeberhard and M. Forina, 1991: Wine, UCI; with scikit-learn",
        licence="CC BY 4.0",
    )
    _subject = "the wines come"


_CELL_MEASUREMENTS = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave points", "symmetry", "fractal dimension"),
)


class BreastCancer(ScikitLearnDataSet):
    """Breast cancer: 569 tumours, malignant or benign, with thirty measurements of cell nuclei (W. Wolberg et al., 1993).

    It is part of scikit-learn; nothing is downloaded. `x` is unscaled, from thousandths to thousands; `label` is 0 for
    malignant, 1 for benign.
    """

    name = "breast_cancer"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 30]", "label": "int64[n]"},
        rows={"train": 455, "test": 114, "all": 569},
        features=tuple(form.format(name) for form in ("mean {}", "{} error", "worst {}") for name in _CELL_MEASUREMENTS),
        classes=("malignant", "benign"),
        source="W. Wolberg, O. Mangasarian, N. Street and W. Street, 1993: Breast Cancer Wisconsin (Diagnostic), UCI; with scikit-learn",
        licence="CC BY 4.0",
    )
    _subject = "the tumours come"


class Diabetes(ScikitLearnDataSet):
    """Diabetes: 442 patients with ten measurements and the disease progression after a year (B. Efron et al., 2004).

    It is part of scikit-learn; nothing is downloaded. `x` is unscaled; `y` is from 25 to 346.
    """

    name = "diabetes"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 10]", "y": "float32[n, 1]"},
        rows={"train": 353, "test": 89, "all": 442},
        features=("age", "sex", "body mass index", "blood pressure", *(f"serum {number}" for number in range(1, 7))),
        source="B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, 2004: Least angle regression; with scikit-learn",
        licence="none stated; published with the paper and distributed with scikit-learn (BSD)",
    )
    _subject = "the patients come"

    def load(self) -> Rows:
        """Return all rows. Raises DataError if scikit-learn is not installed."""
        x, y = self._arrays(scaled=False)
        return {"x": x.astype("float32"), "y": y.astype("float32")[:, None]}


class SampleImages(DataSet):
    """Sample images: two color photographs, a temple in China and a flower, 427 by 640 pixels, part of scikit-learn.

    `image` has red, green and blue from 0 to 1. The photographs are not divided into training and test rows.
    """

    name = "sample_images"
    DESCRIPTION = Description(
        columns={"image": "float32[n, 3, 427, 640]"},
        rows={"all": 2},
        source="china.jpg by danielbuechele, flower.jpg by vultilion; with scikit-learn",
        licence="CC BY 2.0",
    )

    def load(self) -> Rows:
        """Return both photographs. Raises DataError if scikit-learn is not installed, or Pillow, which decodes them."""
        try:
            images = _load("the photographs come", "load_sample_images").images
        except ImportError:
            raise DataError("the photographs need Pillow, which is not installed", hint='pip install "oarlock[images]"') from None
        return {"image": (numpy.stack(images).transpose(0, 3, 1, 2) / numpy.float32(255)).astype("float32")}


digits, iris, wine, breast_cancer, diabetes, sample_images = Digits(), Iris(), Wine(), BreastCancer(), Diabetes(), SampleImages()

"""Data sets for examples and tests. Each is a dict of arrays with the rows first.

A data set has `load()`, which returns all rows, and usually `split(seed)`, which returns training and test rows.
`ol.datasets.load("iris:train")` loads one by name, as on a command line, and `ol.datasets.descriptions()` describes all of them without
reading any.
"""

from oarlock.datasets.by_name import descriptions, load
from oarlock.datasets.cifar10 import cifar10
from oarlock.datasets.data_set import Description
from oarlock.datasets.generated import addition, copying, moons, sorting, spirals, waves
from oarlock.datasets.mnist import fashion_mnist, mnist
from oarlock.datasets.scikit_learn import breast_cancer, diabetes, digits, iris, sample_images, wine
from oarlock.datasets.text import Vocabulary, shakespeare, standard_library
from oarlock.registry.checked_call import publish

__all__ = [
    "Description",
    "Vocabulary",
    "addition",
    "breast_cancer",
    "cifar10",
    "copying",
    "descriptions",
    "diabetes",
    "digits",
    "fashion_mnist",
    "iris",
    "load",
    "mnist",
    "moons",
    "sample_images",
    "shakespeare",
    "sorting",
    "spirals",
    "standard_library",
    "waves",
    "wine",
]

publish(__name__)

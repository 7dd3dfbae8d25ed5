"""Data that examples and tests train on. Each is a dict of arrays with the rows first.

A data set is a module: `load()` gives all rows, `split(seed)` those to train on and those to test on. `ol.datasets.load("iris:train")`
finds one by its name, as a command line does, and `ol.datasets.descriptions()` tells of all without reading any.
"""

from oarlock.datasets import (
    addition,
    breast_cancer,
    cifar10,
    copying,
    diabetes,
    digits,
    fashion_mnist,
    iris,
    mnist,
    moons,
    sample_images,
    shakespeare,
    sorting,
    spirals,
    standard_library,
    waves,
    wine,
)
from oarlock.datasets.by_name import descriptions, load
from oarlock.datasets.description import Description
from oarlock.datasets.text import Vocabulary
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

"""Data sets, their descriptions, and random splits of rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.registry.range_check import require_count

__all__ = ["DataSet", "Description", "GeneratedDataSet", "Rows"]

Rows = dict[str, numpy.ndarray]
"""The columns of some rows, by name."""


@dataclass(frozen=True)
class Description:
    """The facts about a data set, known before it is read.

    `columns` has the type of each column, with `n` rows. `rows` is the number of rows of each part with default arguments; it is empty if
    it depends on the machine. `features` are the names of the columns of `x`, `classes` the names of the labels from 0. `source` names the
    authors, `licence` the terms of use or the name of the licence.
    """

    columns: Mapping[str, str]
    source: str
    licence: str
    rows: Mapping[str, int] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


class DataSet:
    """A data set: `load` returns all rows, and `split`, if there is one, training and test rows."""

    name: ClassVar[str]
    DESCRIPTION: ClassVar[Description]

    def load(self) -> Rows:
        """Return all rows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<data set {self.name}>"

    def __call__(self, *arguments: object, **keywords: object) -> None:
        raise ArgumentError(
            f"ol.datasets.{self.name} is a data set, which cannot be called", location=here(), hint=f"ol.datasets.{self.name}.load()"
        )


class GeneratedDataSet(DataSet):
    """A data set whose rows are drawn independently from a seed."""

    load: Callable[..., Rows]

    def split(self, seed: int = 0, **sizes: Any) -> tuple[Rows, Rows]:
        """Return the first 80 % of the rows for training, and the rest for testing. The other arguments are as in `load`."""
        data = self.load(seed=seed, **sizes)
        count = len(next(iter(data.values()))) * 4 // 5
        return {name: column[:count] for name, column in data.items()}, {name: column[count:] for name, column in data.items()}

    def _random(self, seed: int, **sizes: int) -> numpy.random.Generator:
        """Return a random generator for `seed`. Raises ArgumentError if one of `sizes` is below 1."""
        for name, size in sizes.items():
            require_count(name, size)
        return numpy.random.default_rng(seed % 2**64)

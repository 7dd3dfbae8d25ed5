"""Description of a data set: contents, source and licence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Description"]


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

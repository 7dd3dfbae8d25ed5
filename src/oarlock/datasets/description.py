"""Description: what a data set holds, where it comes from, and on what terms."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Description"]


@dataclass(frozen=True)
class Description:
    """The facts about a data set, known before it is read.

    `columns` has the type of each column, of `n` rows. `rows` counts those of each part, as long as nothing else is asked for; it is empty
    where that depends on the machine. `features` are the names of the numbers in a row of `x`, `classes` those of the labels from 0 on.
    `source` says who made it, `licence` what its makers allow, in their words or the name of the licence.
    """

    columns: Mapping[str, str]
    source: str
    licence: str
    rows: Mapping[str, int] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

"""Where the value of a variable is, when workers run one program together on parts of its rows.

The words are those of PyTorch's DTensor and of GSPMD (Xu et al., 2021): a value is replicated, sharded, or a partial sum.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from oarlock.ir.size import Shape, Size, add, floor_divide
from oarlock.ir.var import Var

__all__ = ["PARTIAL", "REPLICATED", "Decision", "Kind", "Placement", "numbers_of", "rows_of", "sharded", "share_of", "shares", "splits"]


class Kind(Enum):
    """The relation of what the workers hold to the value that one worker with all rows would have."""

    REPLICATED = "replicated"
    """Every worker has the value."""
    SHARDED = "sharded"
    """Laid one after another along an axis, what the workers have is the value."""
    PARTIAL = "partial"
    """Added up, what the workers have is the value."""
    SHARES = "shares"
    """As sharded, along an axis whose size is a number, of which each of so many workers has as much as the others."""
    NUMBERS = "numbers"
    """Sharded along the first axis; the elements count the rows of each worker from 0 on, where those of the value count all rows."""
    SPLITS = "splits"
    """Row splits of the rows that the worker has."""


class Placement(NamedTuple):
    kind: Kind
    axis: int = 0
    rows: Size | None = None
    """Of numbers: the size, on one worker, of what they count."""
    workers: int = 0
    """Of shares: how many there are."""
    outer: int = 1
    """Sharded: the axis has so many parts, one after another, and of each the worker has its rows: of 3 * n elements in columns, 3."""

    @property
    def differs(self) -> bool:
        """Whether the workers have something of their own, which is no sum."""
        return self.by_rows or self.kind is Kind.SPLITS

    @property
    def along_axis(self) -> bool:
        """Whether the workers have different parts of the value along an axis."""
        return self.by_rows or self.kind is Kind.SHARES

    @property
    def by_rows(self) -> bool:
        """Whether the workers have different rows of the value."""
        return self.kind in (Kind.SHARDED, Kind.NUMBERS)


REPLICATED = Placement(Kind.REPLICATED)
PARTIAL = Placement(Kind.PARTIAL)


def sharded(axis: int = 0, outer: int = 1) -> Placement:
    return Placement(Kind.SHARDED, axis, outer=outer)


def numbers_of(rows: Size) -> Placement:
    return Placement(Kind.NUMBERS, 0, rows)


def shares(axis: int, workers: int) -> Placement:
    return Placement(Kind.SHARES, axis, None, workers)


def share_of(shape: Shape, placement: Placement) -> Shape:
    """The shape of what one worker has of a value of this shape, of which all have shares; of others, the same."""
    if placement.kind is not Kind.SHARES:
        return shape
    return (*shape[: placement.axis], floor_divide(shape[placement.axis], placement.workers), *shape[placement.axis + 1 :])


def splits() -> Placement:
    return Placement(Kind.SPLITS)


def rows_of(var: Var, placement: Placement) -> Size | None:
    """The size that counts the rows which a worker has of a variable; None where it has none of its own."""
    if var.shape is None or not (placement.by_rows or placement.kind is Kind.SPLITS):
        return None
    return var.shape[placement.axis] if placement.by_rows else add(var.shape[0], -1)


@dataclass
class Decision:
    """How one op is computed: the placements of what it reads and of what it computes then, and what is written in its stead."""

    needs: dict[Var, Placement]
    gives: dict[Var, Placement]
    written: str = ""
    """The way of `writing.py` to write it; empty where the op stays, on other inputs."""
    attributes: dict[str, object] = field(default_factory=dict)
    """The attributes that the op has then in place of its own."""
    outputs: list[Placement] = field(default_factory=list)
    """The placements in which the block of the op returns its outputs."""

"""How values go into the block of an op and come out of it, and by what it is decided how often the block runs."""

from collections.abc import Sequence
from typing import NamedTuple

from oarlock.ir.size import Size
from oarlock.ir.var import Var

__all__ = ["BlockFlow"]


class BlockFlow(NamedTuple):
    """The flow of one op with a block: pairs of variables, one inside of the block and one outside.

    What is `carried` goes from trip to trip: what the block is given, what it returns for the next trip, and both ends outside. The block
    runs as often as `decided_by` says: variables outside, or inside, such as the condition of a loop; and as the `lengths` of sequences.
    """

    given: Sequence[tuple[Var, Var]]
    carried: Sequence[tuple[Var, Var, Var, Var]]
    returned: Sequence[tuple[Var, Var]]
    decided_by: Sequence[Var]
    lengths: Sequence[Size]

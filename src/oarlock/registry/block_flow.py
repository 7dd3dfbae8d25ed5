"""The data flow between an op and its block, and the values that determine how often the block runs."""

from collections.abc import Sequence
from typing import NamedTuple

from oarlock.ir.size import Size
from oarlock.ir.var import Var

__all__ = ["BlockFlow"]


class BlockFlow(NamedTuple):
    """The data flow of one op with a block, as pairs of an inner and an outer variable.

    `carried` variables pass from iteration to iteration: the block's input, its output for the next iteration, and the initial and final
    values outside. The number of runs depends on the variables `decided_by`, outside or inside, such as a loop condition, and on the
    `lengths` of sequences.
    """

    given: Sequence[tuple[Var, Var]]
    carried: Sequence[tuple[Var, Var, Var, Var]]
    returned: Sequence[tuple[Var, Var]]
    decided_by: Sequence[Var]
    lengths: Sequence[Size]

"""A straight line of ops that a plan is written of: where their results lie, and what is known of them while it is written."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var, is_among
from oarlock.op.control.even_sizes import even_sizes
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.plan import control_flow
from oarlock.runtime.plan.buffer_assignment import BufferAssignment
from oarlock.runtime.plan.constants import find_constants
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.stacked_outputs import Packed, Steps

__all__ = ["StraightLine"]


class StraightLine:
    """Ops of a block that are written one after another, and where their results lie.

    The values `kept` stay after them; those in `given` and `states` come from outside, and may be written over; see `BufferAssignment`.
    Sizes with the names `around` are one number wherever they stand, as are those that `block` declares. What is the same in each run is
    made once.
    """

    def __init__(
        self,
        block: Block,
        ops: Sequence[Op],
        kept: Iterable[Var],
        catalogue: Catalogue,
        around: Collection[str] = (),
        given: Collection[Var] = (),
        states: Mapping[Var, Var] | None = None,
        *,
        gapped: Collection[Var] = (),
    ):
        self.ops = ops
        self.kept = set(kept)
        self.sizes = even_sizes(block, around)
        self.liveness = Liveness(ops, self.kept, catalogue)
        made_once = find_constants(ops, catalogue)
        self.buffers = BufferAssignment(ops, self.kept, self.liveness, catalogue, (self.sizes, around), given, states, made_once, gapped)
        self.constants = {var for var in made_once if not self.buffers.alias_sets.stays(var)}
        self.number = 0  # of the op that is being written
        self.rows: dict[Var, str] = {}  # row splits -> the name of the rows that they cut
        self.packed: dict[Var, Packed] = {}  # what a ragged loop has returned
        self.unjoined: set[Var] = set()  # those of them that nobody needs but as steps
        self.headroom: dict[Var, str] = {}  # a sequence -> the buffer that it lies in, with room for the first value of a memory
        self.sequences = {self.buffers.root(var) for op in ops for var in control_flow.steps_through(op)}  # what lies where one begins
        self.steps: dict[Var, Steps] = {}  # what lies in a buffer that is held -> the steps of that
        self.held: dict[str, list[Var]] = {}  # a buffer that is to be given back -> what lies in it, beside what is written over that
        self.cut: set[Op] = set()  # ops that are not called: what they would cut is cut before the loop
        self.dense: set[Var] = set()  # what lies in the steps of a buffer: no gaps between the elements of its last axis
        self.own: AbstractSet[Var] = frozenset()  # memories of a loop that its trips write over: what they begin as is a copy
        self.conditions: dict[Op, str] = {}  # an op that not every trip needs -> the text of whether this one does
        self.inside: set[Var] = set()  # what only the ops of a region, which one call computes, read
        self.bodies: dict[Op, StraightLine] = {}  # the lines of loops, as far as they were asked for

    def is_stepped_through(self, var: Var, splits: Var) -> bool:
        """Whether `var` is read as a sequence alone, by loops over the rows that `splits` cut."""
        return all(
            reader is not None
            and is_among(splits, reader.inputs.get("splits", ()))
            and sum(var is other for other in reader.reads) == sum(var is other for other in reader.inputs.get("sequences", ()))
            for reader in self.buffers.readers(var)
        )

    def steps_of(self, var: Var) -> Steps | None:
        """The steps of `var`, where it lies in a buffer that is held."""
        return self.steps.get(self.buffers.root(var))

    def hold(self, steps: Steps, var: Var) -> None:
        """Note that `var` lies in a buffer, which is given back no sooner than nobody reads it, if it is held."""
        if steps.buffer in self.held:
            self.held[steps.buffer].append(var)
            self.steps[var] = steps

    def may_write_over(self, var: Var) -> bool:
        """Whether the op that is being written may write over `var`, which it reads."""
        return self.may_be_written_over(var, self.number)

    def may_be_written_over(self, var: Var, number: int) -> bool:
        """The same for op `number`."""
        return self.buffers.is_even(var) and self.buffers.alias_sets.is_free(var, number, self.ops[number])

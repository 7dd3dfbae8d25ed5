"""The variables by which a program knows the rows of all workers: how many each has, how many there are, and their numbers."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property

from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.names import is_name
from oarlock.ir.operation import Role
from oarlock.ir.size import Size, names_in, rename
from oarlock.ir.var import Var
from oarlock.op.collective import all_gather, shard
from oarlock.op.cumulative import cumsum
from oarlock.op.elementwise import subtract
from oarlock.op.manipulation import reshape
from oarlock.op.reduction import reduce_sum
from oarlock.op.sequence import sequence_lengths
from oarlock.op.told_shape import arange, size

__all__ = ["RowsOfWorkers", "free_name", "written_into"]


class RowsOfWorkers:
    """The rows that a size counts on one worker. Each variable is written where it is first asked for, behind one that tells the size."""

    def __init__(self, rows: Size, known: "dict[Size, RowsOfWorkers]"):
        self.rows = rows
        self._known = known
        self._found: dict[str, Var] = {}
        self._tellers: list[tuple[Var, int | None]] = []
        self._told_whole_by: Var | None = None

    def add_teller(self, var: Var, axis: int | None) -> None:
        """Note a variable that has the rows along an axis, or is the row splits of as many."""
        self._tellers.append((var, axis))

    @cached_property
    def _teller(self) -> tuple[Var, int | None]:
        """The first of them that has a value where the rows are first asked for."""
        return next((var, axis) for var, axis in self._tellers if var.op is None or var.op in var.block.ops)

    @property
    def block(self) -> Block:
        return self._teller[0].block

    @property
    def axis(self) -> int:
        return self._teller[1] or 0

    @property
    def all(self) -> Size:
        """The size that counts the rows of all workers."""
        return rename(self.rows, {name: f"{name}.all" for name in names_in(self.rows) if name in self._known})

    @property
    def made(self) -> Collection[Var]:
        """The variables that were written so far."""
        return self._found.values()

    def may_be_told_by(self, var: Var) -> None:
        """Note a variable of the outermost block, of which each worker has the whole, where one of its sizes counts all rows."""
        if self._told_whole_by is None and self.all in (var.shape or ()):
            self._told_whole_by = var

    @property
    def told_by(self) -> Var:
        """A variable that has the rows along `axis`."""
        teller, axis = self._teller
        if axis is not None:
            return teller
        if "lengths" not in self._found:
            with written_into(self.block):
                self._found["lengths"] = sequence_lengths(teller)
        return self._found["lengths"]

    @property
    def counts(self) -> Var:
        """The number of rows of each worker: int64[w]."""
        if "counts" not in self._found:
            told_by = self.told_by
            with written_into(self.block):
                own = reshape(size(told_by, axis=self.axis), shape=Sizes((1,)))
                self._found["counts"] = all_gather(own, name=self._name("counts"))
        return self._found["counts"]

    @property
    def total(self) -> Var:
        """The number of the rows of all workers: int64[]."""
        if "total" not in self._found:
            counts = self.counts
            with written_into(self.block):
                self._found["total"] = reduce_sum(counts, name=self._name("total"))
        return self._found["total"]

    @property
    def first(self) -> Var:
        """How many rows the workers before this one have: int64[]."""
        if "first" not in self._found:
            counts = self.counts
            with written_into(self.block):
                before = subtract(cumsum(counts, axis=0), counts)
                self._found["first"] = reshape(shard(before), shape=Sizes(()), name=self._name("first"))
        return self._found["first"]

    @property
    def whole(self) -> Var:
        """The numbers of the rows of all workers, from 0 on: int64[n.all]."""
        if "whole" not in self._found:
            total = self.total
            with written_into(self.block):
                if self._told_whole_by is not None:
                    var = arange([self._told_whole_by], stop=Sizes((self.all,)), name=self._name("numbers"))
                elif names_in(self.rows) == {self.rows}:
                    var = arange([], stop=reshape(total, shape=Sizes((1,))), name=self._name("numbers"))
                    var.shape = (self.all,)
                    self.block.program.claim_symbols(var.shape)
                else:
                    like = [self._known[name].whole for name in sorted(names_in(self.rows) & self._known.keys())]  # type: ignore[operator]
                    var = arange([*like, self.told_by], stop=Sizes((self.all,)), name=self._name("numbers"))
                self._found["whole"] = var
        return self._found["whole"]

    @property
    def own(self) -> Var:
        """The numbers of this worker's rows among those of all: int64[n]."""
        if "own" not in self._found:
            counts, whole = self.counts, self.whole
            with written_into(self.block):
                local = arange([self.told_by], stop=Sizes((self.rows,)))
                self._found["own"] = shard(whole, counts, local, name=self._name("own"))
        return self._found["own"]

    def _name(self, what: str) -> str:
        return free_name(self.block, self._teller[0].name.partition("@")[0], what)


def free_name(block: Block, name: str, what: str) -> str:
    """A name for `what` is made of a variable."""
    made = f"{name}.{what}"
    return made if is_name(made) and block.program.is_free(made) else block.program.unique(what)


@contextmanager
def written_into(block: Block, role: Role | None = None) -> Iterator[None]:
    """Append what is written to a block, as what the program predicts by, unless another role is given."""
    location = block.program.writing[1]
    with block.program.write_as(Role.FORWARD if role is None else role, location), block:
        yield

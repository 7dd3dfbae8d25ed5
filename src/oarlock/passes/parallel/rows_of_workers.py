"""The variables by which a program knows the rows of all workers: how many each has, how many there are, and their numbers."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.names import is_name
from oarlock.ir.operation import Role
from oarlock.ir.size import Size, linear, names_in, rename
from oarlock.ir.var import Var
from oarlock.op.collective import all_gather, all_reduce, shard
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.cumulative import cumsum
from oarlock.op.elementwise import multiply, subtract
from oarlock.op.manipulation import reshape
from oarlock.op.reduction import reduce_sum
from oarlock.op.sequence import sequence_lengths
from oarlock.op.told_shape import arange, size

__all__ = ["RowsOfSize", "RowsOfWorkers", "free_name", "written_into"]


class RowsOfWorkers:
    """Of each size that counts the rows of one worker, the rows of all, as a block can know them: by what it sees that has such rows."""

    def __init__(self) -> None:
        self._tellers: dict[Size, list[tuple[Var, int | None]]] = {}
        self._whole_tellers: dict[Size, list[tuple[Var, int | None]]] = {}
        self._found: dict[tuple[Size, Block], RowsOfSize] = {}

    @property
    def sizes(self) -> Collection[Size]:
        """The sizes that count rows of one worker."""
        return self._tellers.keys()

    @property
    def made(self) -> set[Var]:
        """The variables that were written so far."""
        return {var for rows in self._found.values() for var in rows.made}

    def add_teller(self, rows: Size, var: Var, axis: int | None) -> None:
        """Note a variable that has as many rows along an axis, or is the row splits of as many."""
        self._tellers.setdefault(rows, []).append((var, axis))

    def add_whole_teller(self, var: Var, parted: int | None) -> None:
        """Note a variable that every worker has whole, but for one axis: its other sizes may count the rows of all."""
        for axis, item in enumerate(var.shape or ()):
            if axis != parted:
                self._whole_tellers.setdefault(item, []).append((var, parted))

    def find_whole_tellers(self, rows: Size, block: Block) -> list[Var]:
        """Variables written by now, for a block to see, that tell how many such rows all workers have; none where that is not told."""
        for sizes in ([rows], sorted(names_in(rows))):
            tellers = [self._tellers_of_all(item) for item in sizes]
            found = [self._first_seen(each, block) for each in tellers]
            if None not in found:
                return [self._sized(var, each[var]) for var, each in zip(found, tellers, strict=True) if var is not None]
        return []

    def _tellers_of_all(self, rows: Size) -> dict[Var, int | None]:
        """The variables that tell how many such rows all workers have: those with as many, or a multiple."""
        multiples = [item for item in self._whole_tellers if item != rows and (linear(item) or ("", 0, 0))[0] == rows]
        return {var: parted for item in (rows, *multiples) for var, parted in self._whole_tellers.get(item, ())}

    def _sized(self, var: Var, parted: int | None) -> Var:
        """A variable, once its sizes are called by the names of the rows of all."""
        var.shape = tuple(item if axis == parted else self.of_all(item) for axis, item in enumerate(var.shape or ()))
        return var

    @staticmethod
    def _first_seen(vars: Iterable[Var], block: Block) -> Var | None:
        around = set(block.enclosing())
        return next((var for var in vars if var.block in around and (var.op is None or var.op in var.block.ops)), None)

    def of_all(self, rows: Size) -> Size:
        """The size that counts the rows of all workers."""
        return rename(rows, {name: f"{name}.all" for name in names_in(rows) if name in self._tellers})

    def find(self, rows: Size, block: Block) -> "RowsOfSize | None":
        """The rows that a size counts, as what is written into a block by now tells them, or into one around it.

        So many times the rows of another size are told by what tells these.
        """
        name, _, rest = linear(rows) or ("", 1, 0)
        for counted in (rows,) if rest else (rows, name):
            tellers = dict(self._tellers.get(counted, ()))
            var = self._first_seen(tellers, block)
            if var is not None:
                return self._found.setdefault((rows, var.block), RowsOfSize(rows, (var, tellers[var]), self))
        return None

    def get(self, rows: Size, block: Block) -> "RowsOfSize":
        """The same, where somebody tells them."""
        found = self.find(rows, block)
        assert found is not None, (rows, block.path)
        return found


class RowsOfSize:
    """The rows that a size counts on one worker. Each variable is written where it is first asked for, behind one that tells the size."""

    def __init__(self, rows: Size, teller: tuple[Var, int | None], workers: RowsOfWorkers):
        self.rows = rows
        self.block = teller[0].block
        self._teller = teller
        self._workers = workers
        self._found: dict[str, Var] = {}

    @property
    def axis(self) -> int:
        return self._teller[1] or 0

    @property
    def made(self) -> Collection[Var]:
        """The variables that were written so far."""
        return self._found.values()

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

    @cached_property
    def _multiple(self) -> "tuple[int, RowsOfSize] | None":
        """How many times the rows of which other size these are, where that is told too."""
        name, factor, rest = linear(self.rows) or ("", 1, 0)
        other = self._workers.find(name, self.block) if factor != 1 and not rest else None
        return None if other is None else (factor, other)

    @property
    def counts(self) -> Var:
        """The number of rows of each worker: int64[w]."""
        if "counts" not in self._found:
            if self._multiple is not None:
                factor, other = self._multiple
                counts = other.counts
                with written_into(self.block):
                    self._found["counts"] = multiply(counts, constant_like(factor, counts), name=self._name("counts"))
            else:
                told_by = self.told_by
                with written_into(self.block):
                    own = reshape(size(told_by, axis=self.axis), shape=Sizes((1,)))
                    self._found["counts"] = all_gather(own, name=self._name("counts"))
        return self._found["counts"]

    @property
    def total(self) -> Var:
        """The number of the rows of all workers: int64[]."""
        if "total" not in self._found:
            if "counts" in self._found:
                with written_into(self.block):
                    found = reduce_sum(self.counts, name=self._name("total"))
            elif self._multiple is not None:
                factor, other = self._multiple
                total = other.total
                with written_into(self.block):
                    found = multiply(total, constant_like(factor, total), name=self._name("total"))
            else:
                told_by = self.told_by
                with written_into(self.block):
                    (found,) = all_reduce([size(told_by, axis=self.axis)])
                    self.block.rename(found, self._name("total"))
            self._found["total"] = found
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
            told_by = self._workers.find_whole_tellers(self.rows, self.block)
            told_by = [self._multiple[1].whole] if self._multiple is not None and not told_by else told_by
            total = None if told_by else self.total
            with written_into(self.block):
                size_of_all = self._workers.of_all(self.rows)
                if told_by:
                    var = arange(told_by, stop=Sizes((size_of_all,)), name=self._name("numbers"))
                else:
                    var = arange([], stop=reshape(total, shape=Sizes((1,))), name=self._name("numbers"))
                    var.shape = (size_of_all,)
                    self.block.program.claim_symbols(var.shape)
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

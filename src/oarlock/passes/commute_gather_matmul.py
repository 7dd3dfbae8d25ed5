"""A product before a lookup: the rows of a table are multiplied once each, not as often as they are looked up."""

from math import prod

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, are_same, is_among
from oarlock.registry.catalogue import Catalogue, standard

__all__ = ["commute_gather_matmul"]

_KNOWN = ("linear", "linear_dw", "linear_dx", "scatter_add", "gather", "embedding_linear", "embedding_linear_dw", "embedding_linear_dx")


_LARGE = 8192
"""Rows of a table, of which twice as many ids are seldom asked for at once."""


def commute_gather_matmul(program: Program, catalogue: Catalogue) -> int:
    """Let products in `program` know that their rows are taken from a table; return how many products that were.

    Before                                     After
        x = gather(table, ids)                     y = embedding_linear(table, ids, w, b)
        y = linear(x, w, b)                        dw = embedding_linear_dw(table, ids, dy)
        dw = linear_dw(x, dy)                      dtable = embedding_linear_dx(ids, w, table, dy)
        dx = linear_dx(w, dy)
        dtable = scatter_add(dx, ids, table)

    What becomes of them decides when it runs which way is shorter: for twice as many ids as rows, or more, `gather(linear(table, w, b),
    ids)` and, on the way back, the sums of `dy` for each row. Legal for a table [v, k] whose rows are what is multiplied. The lookup is
    made where it was, with the product, and refuses ids with the same message. The products with w are those of other rows, and
    gradients are added up in another order: values change in their last bits. Saves the products of rows that are asked for again.
    Where there are fewer ids, the rows are taken once more for dw in place of being kept, and an update does not take dw as a product.

    Does not apply to a table whose number of rows is no number, so that it may grow with the ids, or that is known to be larger;
    where the rows are read otherwise, but for their shape; or where w is computed after the lookup. dtable is exchanged by itself, but for
    that of more than 8,192 rows which only a step of `sgd` reads: `fuse_updates` lets it take the rows.
    """
    if any(catalogue.find(type) is not standard.find(type) for type in _KNOWN):
        return 0  # its operators are someone else's
    readers = _Readers(program)
    lookups = [
        op for op in walk(program.main) if op.type == "gather" and not op.attributes and _may_repeat(*op.inputs["x"], *op.inputs["rows"])
    ]
    count = sum(_Lookup(op, readers, catalogue).commute() for op in lookups)
    if count:
        program.changed()
    return count


def _may_repeat(table: Var, rows: Var) -> bool:
    """Whether a table of vectors of floats, of a declared number of rows, might be asked for each of them twice."""
    if (
        not table.dtype.is_floating
        or table.shape is None
        or rows.shape is None
        or len(table.shape) != 2
        or not isinstance(table.shape[0], int)
    ):
        return False
    asked = [size for size in rows.shape if isinstance(size, int)]
    return len(asked) < len(rows.shape) or prod(asked) >= 2 * table.shape[0]


class _Readers:
    """The ops that read a variable, of a whole program, and the variables that are wanted otherwise."""

    def __init__(self, program: Program):
        self.wanted = {*program.targets.values(), *(var for block in program.blocks for var in block.outputs)}
        self._ops: dict[Var, list[Op]] = {}
        for op in walk(program.main):
            self.insert(op)

    def of(self, var: Var) -> list[Op]:
        return list(self._ops.get(var, ()))

    def insert(self, op: Op) -> None:
        for var in dict.fromkeys(op.reads):
            self._ops.setdefault(var, []).append(op)

    def remove(self, op: Op) -> None:
        for var in dict.fromkeys(op.reads):
            self._ops[var].remove(op)


class _Lookup:
    """Rows that are taken from a table, and what is computed of them."""

    def __init__(self, lookup: Op, readers: _Readers, catalogue: Catalogue):
        self.lookup = lookup
        self.block: Block = lookup.block
        self.readers = readers
        self.catalogue = catalogue
        (self.table,), (self.rows,), (self.taken,) = lookup.inputs["x"], lookup.inputs["rows"], lookup.writes

    def commute(self) -> int:
        return self._exchange_gradients_of_table() + self._exchange_products()

    def _exchange_gradients_of_table(self) -> int:
        after = set(self.block.ops[self.block.ops.index(self.lookup) :])
        scatters = [op for op in self.readers.of(self.rows) if op.type == "scatter_add" and not op.attributes and op in after]
        count = 0
        for scatter in scatters:
            (values,) = scatter.inputs["values"]
            made = values.op
            if scatter.inputs["like"][0] is not self.table or made is None or made.type != "linear_dx" or made.block is not self.block:
                continue
            if values in self.readers.wanted or self.readers.of(values) != [scatter] or scatter.inputs["rows"][0] is not self.rows:
                continue
            if self._is_left_to_an_update(scatter):
                continue
            slots = {"rows": (self.rows,), "w": made.inputs["w"], "x_shape": (self.table,), "dout": made.inputs["dout"]}
            self._replace(scatter, "embedding_linear_dx", slots)
            count += 1
        return count

    def _is_left_to_an_update(self, scatter: Op) -> bool:
        """Whether `fuse_updates` does better with a gradient: of a large table, an update by rows leaves most of it alone."""
        (gradient,) = scatter.writes
        is_updated = gradient not in self.readers.wanted and [op.type for op in self.readers.of(gradient)] == ["sgd"]
        return is_updated and self.table.shape[0] > _LARGE  # type: ignore[index, operator]

    def _exchange_products(self) -> int:
        readers = self.readers.of(self.taken)
        products = [op for op in readers if op.type == "linear" and self._multiplies(op)]
        gradients = [op for op in readers if op.type == "linear_dw" and self._multiplies(op)]
        others = [op for op in readers if op not in products and op not in gradients]
        if not products or self.taken in self.readers.wanted or not all(map(self._reads_shape, others)):
            return 0
        first = next((op for op in products if self._is_there(op)), None)
        if first is None:
            return 0
        for op in products:
            if op is not first:
                self._replace(op, "embedding_linear", self._inputs_of(op))
        for op in gradients:
            self._replace(op, "embedding_linear_dw", {**self.lookup.inputs, "dout": op.inputs["dout"]})
        self._take_over(first, keeps=bool(others))
        return len(products) + len(gradients)

    def _multiplies(self, op: Op) -> bool:
        return op.block is self.block and are_same(op.inputs["x"], (self.taken,)) and sum(var is self.taken for var in op.reads) == 1

    def _reads_shape(self, op: Op) -> bool:
        """Whether `op` reads only the shape of what is taken."""
        read = {slot for slot, vars in op.inputs.items() if is_among(self.taken, vars)}
        return read <= {slot.name for slot in self.catalogue.get(op.type).signature.inputs if slot.shape_only}

    def _is_there(self, product: Op) -> bool:
        """Whether all that a product reads besides is there before the lookup."""
        later = set(self.block.ops[self.block.ops.index(self.lookup) :])
        return not any(var.op in later for var in product.reads if var is not self.taken)

    def _inputs_of(self, product: Op) -> dict[str, tuple[Var, ...]]:
        """The inputs of `embedding_linear` in place of a product: the table and the rows instead of the operand that is multiplied."""
        return {**self.lookup.inputs, **{slot: vars for slot, vars in product.inputs.items() if slot != "x"}}

    def _replace(self, op: Op, type: str, inputs: dict[str, tuple[Var, ...]]) -> None:
        (output,) = self.catalogue.get(type).signature.outputs
        made = Op(self.block, type, inputs, {output.name: op.writes}, {}, role=op.role, location=op.location)
        self.block.ops[self.block.ops.index(op)] = made
        self.readers.remove(op)
        self.readers.insert(made)
        for var in made.writes:
            var.op = made

    def _take_over(self, product: Op, *, keeps: bool) -> None:
        """Let the lookup compute a product. It stays the op that it was: so what it refuses is told as before."""
        lookup, block = self.lookup, self.block
        self.readers.remove(lookup)
        self.readers.remove(product)
        if keeps:
            again = Op(block, "gather", lookup.inputs, lookup.outputs, {}, role=lookup.role, location=lookup.location)
            self.taken.op = again
            block.ops.insert(block.ops.index(lookup) + 1, again)
            self.readers.insert(again)
        else:
            del block.vars[self.taken.name]
        lookup.type = "embedding_linear"
        lookup.inputs = self._inputs_of(product)
        self.readers.insert(lookup)
        lookup.outputs = product.outputs
        block.ops.remove(product)
        for var in lookup.writes:
            var.op = lookup

"""Collective ops, in which workers exchange tensors, and the rule that all workers run the same exchanges.

All workers run each exchange, in the same order, even if nothing fetches its result. So none may be in a block that only some workers run.
An input with a symbol among its sizes is assumed to differ between workers, and so is the first such size, unless the program shards
parameters (`Var.sharding`): then all workers get the same inputs. Inputs of fixed size are the same on all workers.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oarlock.errors import VerifyError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size, names_in
from oarlock.ir.traversal import walk, walk_ops
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["ENDED_BY", "BlockFlow", "exchanged", "is_collective", "verify_collective_order"]

ENDED_BY = {"all_reduce_start": "all_reduce_done"}
"""The ops that start an exchange, and those that finish it and are the only ones allowed to read its result."""


def is_collective(op: Op, catalogue: Catalogue) -> bool:
    """Return whether an op, or an op in its blocks, exchanges tensors between workers."""
    return any(catalogue.get(each.type).effects == "collective" for each in walk_ops([op]))


def exchanged(ops: Iterable[Op], catalogue: Catalogue) -> list[Var]:
    """Return the results of all exchanges among `ops`; for an asynchronous exchange, the results of the op that finishes it."""
    return [
        var for op in ops if op.type in ENDED_BY.values() or is_collective(op, catalogue) for var in op.writes if op.type not in ENDED_BY
    ]


def verify_collective_order(program: Program, catalogue: Catalogue) -> None:
    """Check that every exchange runs equally often on all workers. Raises VerifyError for the first that may not.

    Ops compute equal results from equal values. Results of exchanges are equal or differ as the operator declares (`on_workers`), as does
    the worker index. Ops of the main block always run. Also checks that an asynchronous exchange is read only by the op that finishes it.
    """
    _require_ended(program)
    if any(op.blocks and is_collective(op, catalogue) for op in program.main.ops):
        _Search(program, catalogue).run()


def _require_ended(program: Program) -> None:
    started = {var for block in program.blocks for op in block.ops if op.type in ENDED_BY for var in op.writes}
    if not started:
        return
    wanted = dict.fromkeys(program.targets.values(), "is a target")
    wanted |= {var: f"is an output of {block.path}" for block in program.blocks for var in block.outputs}
    wanted |= {var: f"is read by {op.type}" for op in walk(program.main) for var in op.reads if op.type not in ENDED_BY.values()}
    var = next((var for var in wanted if var in started), None)
    if var is not None and var.op is not None:
        raise VerifyError(
            f'"{var.name}" {wanted[var]} while workers still write it: use the result of {ENDED_BY[var.op.type]}',
            location=var.op.location,
            given=[var.describe()],
            op=var.op.type,
        )


def _names(var: Var) -> set[str]:
    """Return the names in the sizes of a variable."""
    return {name for size in var.shape or () for name in names_in(size)}


class _Search:
    def __init__(self, program: Program, catalogue: Catalogue):
        self.program = program
        self.catalogue = catalogue
        kept = program.persistables()
        self.own: set[Var] = {var for var in kept if var.sharding is not None}  # variables that may differ between workers
        self.own_sizes: set[str] = set()  # names of sizes that may differ
        if not self.own:
            shapes = {var: ("?",) if var.shape is None else var.shape for var in program.main.inputs}
            inputs = {var: [size for size in shape if isinstance(size, str)] for var, shape in shapes.items()}
            self.own.update(var for var, sizes in inputs.items() if sizes)
            self.own_sizes = {name for sizes in inputs.values() for name in names_in(sizes[0] if sizes else 1)}

    def run(self) -> None:
        self._settle(self.program.main)
        self._require(self.program.main)

    def _settle(self, block: Block) -> None:
        """Find all variables of a block that may differ. Repeat until nothing is added, because carried values depend on later ops."""
        before = -1
        while before != self._found:
            before = self._found
            for op in block.ops:
                self._op(op)

    @property
    def _found(self) -> int:
        return len(self.own) + len(self.own_sizes)

    def _op(self, op: Op) -> None:
        operator = self.catalogue.get(op.type)
        if op.blocks:
            self._blocks(op)
        elif operator.on_workers == "own" or (operator.on_workers is None and self._reads_own(op)):
            self._add(op)

    def _reads_own(self, op: Op) -> bool:
        """Return whether an op reads a value or size that differs between workers. `size` reads one axis, others possibly all."""
        shapes = {slot.name for slot in self.catalogue.get(op.type).signature.inputs if slot.shape_only}
        for name, vars in op.inputs.items():
            for var in vars:
                sizes = ("?",) if var.shape is None else var.shape
                if op.type == "size":
                    sizes = (sizes[int(op.attributes["axis"]) % len(sizes)],)  # type: ignore[call-overload]
                if (var in self.own) if name not in shapes else self._differ(sizes):
                    return True
        return False

    def _differ(self, sizes: Iterable[Size]) -> bool:
        return any(size == "?" or not self.own_sizes.isdisjoint(names_in(size)) for size in sizes)

    def _add(self, op: Op) -> None:
        """Mark the results of an op, and the sizes it creates, as possibly different."""
        self.own.update(op.writes)
        known = {name for var in op.reads for name in _names(var)}
        self.own_sizes |= {name for var in op.writes for name in _names(var)} - known

    def _blocks(self, op: Op) -> None:
        flow = self.catalogue.get(op.type).block_flow
        if flow is None:  # a custom operator, about which nothing is known
            if self._differs(op.reads):
                self.own.update((*op.writes, *(var for each in walk_ops([op]) for var in each.writes if each is not op)))
            for block in op.blocks:
                self._settle(block)
            return
        found, before = flow(op), -1
        while before != self._found:
            before = self._found
            self._pass_on((outer, inner) for inner, outer in found.given)
            for inside, following, initial, _ in found.carried:
                self._pass_on(((initial, inside), (following, inside)))
            for block in op.blocks:
                self._settle(block)
        self._pass_on((inner, outer) for inner, outer in found.returned)
        for inside, _, _, final in found.carried:
            self._pass_on([(inside, final)])
        if self._differs(found.decided_by) or self._differ(found.lengths):
            self._add(op)

    def _pass_on(self, pairs: Iterable[tuple[Var, Var]]) -> None:
        self.own.update(after for before, after in pairs if before in self.own)

    def _differs(self, vars: Iterable[Var]) -> bool:
        return not self.own.isdisjoint(vars)

    def _require(self, block: Block) -> None:
        for number, op in enumerate(block.ops):
            if op.blocks and is_collective(op, self.catalogue):
                flow = self.catalogue.get(op.type).block_flow
                decided_by = op.reads if flow is None else flow(op).decided_by
                why = next((var for var in decided_by if var in self.own), None)
                if why is None and flow is not None and self._differ(flow(op).lengths):
                    why = op.reads[0]
                if why is not None:
                    exchange = next(each for each in walk_ops([op]) if self.catalogue.get(each.type).effects == "collective")
                    raise VerifyError(
                        f"{block.path}, op {number} ({op.type}): workers exchange tensors in its block ({exchange.type}), but may run it a "
                        f'different number of times, because "{why.name}" differs between workers: some would wait forever',
                        location=exchange.location or op.location,
                        given=[why.describe()],
                        hint="decide by a value that is equal on all workers, such as a mean over all rows, or exchange outside the block",
                        op=op.type,
                    )
                for inner in op.blocks:
                    self._require(inner)


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

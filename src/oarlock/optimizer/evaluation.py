"""Re-evaluation of a cost and its gradients at other parameter values, in the same step."""

from collections.abc import Iterable, Mapping, Sequence

from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import names_in
from oarlock.ir.substitution import rename_sizes
from oarlock.ir.traversal import inner_blocks, needed_ops
from oarlock.ir.var import Var
from oarlock.passes.recomputation.copies import copy_with_blocks

__all__ = ["Evaluation"]


class Evaluation:
    """The ops that compute `targets` of the main block from `parameters`, to be written again elsewhere.

    Values that do not depend on parameters, such as input batches, are reused. Random ops draw the same numbers again.
    """

    def __init__(self, main: Block, targets: Sequence[Var], parameters: Sequence[Var]):
        self.targets = list(targets)
        dependent = set(parameters)
        for op in main.ops:
            if not op.is_commit and any(var in dependent for var in op.reads):
                dependent.update(op.writes)
        needed = needed_ops([op for op in main.ops if not op.is_commit], targets)
        self.ops = [op for op in needed if any(var in dependent for var in op.reads)]
        known = _names(var for var in main.vars.values() if var not in dependent)
        inside = [var for op in self.ops for body in op.blocks for block in inner_blocks(body) for var in block.vars.values()]
        self.sizes = _names([*(var for op in self.ops for var in op.writes), *inside]) - known
        """The names of the sizes that these ops and their blocks create; each copy of an op creates its own."""

    def append(self, values: Mapping[Var, Var]) -> list[Var]:
        """Append the ops to the open, empty block, reading `values` instead of parameters; return the targets there."""
        into = current_block()
        found = dict(values)

        def read(var: Var) -> Var:
            return found.get(var, var)

        for op in self.ops:
            made, results = copy_with_blocks(op, into, read)
            into.ops.append(made)
            found.update(results)
        rename_sizes(into, {name: into.program.unique(name) for name in sorted(self.sizes)})
        into.program.changed()
        return [read(target) for target in self.targets]


def _names(vars: Iterable[Var]) -> set[str]:
    return {name for var in vars for size in (*(var.shape or ()), var.row_splits_of or 1) for name in names_in(size)}

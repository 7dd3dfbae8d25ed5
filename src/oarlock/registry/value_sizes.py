"""Sizes that depend on values: prediction before the kernel allocates memory, and the rule that each has a unique name.

Unique names ensure that different sizes are never assumed equal. Predictions are used for memory limits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from oarlock.errors import VerifyError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size, names_in
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator

__all__ = ["BlockSizes", "Made", "find_size_prediction", "is_bounded_by_inputs", "predict_size", "verify_value_sizes"]

Made = Mapping[Op, Mapping[str, Var]]
"""For each op that creates sizes, their names with the first output that has them."""


class BlockSizes(NamedTuple):
    """The sizes of one op with a block. `checked` are leading sizes of inputs that the run compares with the op's results.

    The block's inputs have the leading size `rows`, which may differ in each iteration; `source` is the variable that determines it.
    """

    checked: frozenset[Size] = frozenset()
    rows: str | None = None
    source: Var | None = None


def _names(vars: Iterable[Var]) -> set[str]:
    """Return the names of sizes in the shapes of some variables, or divided by them, also within expressions such as `2*n+1`."""
    return {name for var in vars for size in (*(var.shape or ()), var.row_splits_of or 1) for name in names_in(size)}


def verify_value_sizes(program: Program, catalogue: Catalogue, made: Made) -> None:
    """Check that every size that depends on values has a unique name. Raises VerifyError for the first that does not.

    `made` lists the ops that create sizes. A name created by an op must not be used before it or created by another op, unless an input of
    the op determines it and the run checks that. Two blocks may use one name for their rows if both are determined by the same variable, or
    if the name is used only inside each. A block may use a known name if one of its inputs has that size, because the run then compares the
    two. Takes linear time.
    """
    if made or any(catalogue.get(op.type).block_sizes is not None for block in program.blocks for op in block.ops if op.blocks):
        _Sizes(program, catalogue, made).verify()


class _Sizes:
    """The names known so far, op by op."""

    def __init__(self, program: Program, catalogue: Catalogue, made: Made):
        self.program = program
        self.catalogue = catalogue
        self.made = made
        self.makers: dict[str, Op] = {}
        self.counted: dict[str, dict[Var, list[Block]]] = {}  # name of rows -> variable that determines them -> blocks that use the name

    def verify(self) -> None:
        """Visit the blocks in execution order, without recursion, because files may nest them deeper than Python's stack."""
        entered = [self._block(self.program.main, set())]
        while entered:
            inner = next(entered[-1], None)
            if inner is None:
                entered.pop()
            else:
                entered.append(self._block(*inner))
        several = {name: [block for blocks in found.values() for block in blocks] for name, found in self.counted.items() if len(found) > 1}
        if several:
            self._require_inside(several)

    def _block(self, block: Block, around: set[str]) -> Iterator[tuple[Block, set[str]]]:
        """Yield each nested block with the names known outside it."""
        known = around | _names(block.inputs)
        for number, op in enumerate(block.ops):
            find = self.catalogue.get(op.type).block_sizes if op.blocks else None
            sizes = (None if find is None else find(op)) or BlockSizes()
            if sizes.rows is not None and sizes.source is not None:
                self._count(op, number, sizes.rows, sizes.source, known)
            for inner in op.blocks:
                yield inner, known
            for name, var in self.made.get(op, {}).items():
                if name in sizes.checked:
                    continue
                if name in known or name in self.makers or name in self.counted:
                    self._refuse(op, number, f'"{var.name}" is declared as {var.type_text}, but {self._whose(name)}')
                self.makers[name] = op
            known |= _names(op.writes)

    def _count(self, op: Op, number: int, rows: str, source: Var, known: set[str]) -> None:
        """Record that `source` determines the number of `rows` in the block of `op`."""
        (body,) = op.blocks
        found = self.counted.setdefault(rows, {})
        given = (size for var in body.inputs for size in (var.shape or ())[bool(var.shape) and var.shape[0] == rows :])  # type: ignore[index]
        if source in found or rows in _names(op.reads) or any(rows in names_in(size) for size in given):
            return
        if (rows in known or rows in self.makers) and rows in _names(op.writes):
            self._refuse(op, number, f"its block uses {rows} as its number of rows, but {self._whose(rows)}")
        found[source] = [*found.get(source, ()), body]

    def _require_inside(self, several: Mapping[str, list[Block]]) -> None:
        """Check that a name used for different rows by several blocks is not used outside them. Raises VerifyError."""
        for block in self.program.blocks:
            around = set(block.enclosing())
            names = {name for name, blocks in several.items() if around.isdisjoint(blocks)}
            for var in block.vars.values() if names else ():
                for name in sorted(names & _names([var])):
                    first, second = several[name][:2]
                    raise VerifyError(
                        f'{block.path}: "{var.name}" is declared as {var.type_text}, but {first.path} and {second.path} '
                        f"use {name} for different rows",
                        location=var.location,
                        hint="rename one of them",
                    )

    def _whose(self, name: str) -> str:
        maker = self.makers.get(name)
        what = "an earlier variable" if maker is None else f"the result of {maker.type}"
        return f"{what} has size {name} too; a size that depends on values needs a unique name"

    def _refuse(self, op: Op, number: int, message: str) -> None:
        raise VerifyError(
            f"{op.block.path}, op {number} ({op.type}): {message}",
            location=op.location,
            hint="use a unique name",
            op=op.type,
        )


_PREDICTIONS: dict[Operator, tuple[Callable[..., int], bool]] = {}
"""By operator: the function that predicts a size, and whether the inputs bound it."""


def predict_size(operator: Operator, *, bounded: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a function of the kernel's arguments that returns the number for "?" in the output shapes of `operator`.

    It must not need more memory than its arguments, and raises the same as the kernel. `bounded` declares that the outputs are at most of
    the order of the inputs, whatever their values: the rows of a selection, but not the numbers up to a given one.
    """

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        _PREDICTIONS[operator] = function, bounded
        return function

    return declare


def find_size_prediction(operator: Operator) -> Callable[..., int] | None:
    """Return the function that predicts data-dependent output sizes, or None if the shapes determine them."""
    return _PREDICTIONS.get(operator, (None, True))[0]


def is_bounded_by_inputs(operator: Operator) -> bool:
    """Return whether the sizes of the inputs bound those of the outputs, so that no value can make these large."""
    _, bounded = _PREDICTIONS.get(operator, (None, not operator.variable_attributes))
    return bounded

"""IfElse: route each row of a batch through one of two blocks.

ie = ol.ifelse()
with ie.true_block():
    ie.output(ol.op.sqrt(x))            # only the rows of x for which the condition holds
with ie.false_block():
    ie.output(x * scale)                # scale: float[1], the same for every row
y = ie(x > 0)                           # x: float[n 1]; y: float[n 1], rows in their order

It is written as ordinary ops - `nonzero`, `gather`, `merge` - around two `conditional_block` ops. A block may receive no rows: its results
are then empty, and a mean over them is NaN.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.size import Shape, Size, add, names_in, rename
from oarlock.ir.substitution import rename_sizes, replace_reads
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.layer.control.body import count_values, open_block, require_consistent, require_returned, require_same_block
from oarlock.op.control.conditional import conditional_block
from oarlock.op.indexing import gather, merge, nonzero
from oarlock.op.manipulation import flatten
from oarlock.op.sequence import sequence_lengths
from oarlock.op.sequence_layout import sequence_elements, sequence_splits
from oarlock.registry.creator import require_type

__all__ = ["IfElse", "ifelse"]


@dataclass(eq=False)
class _Side:
    """One of the two blocks: its outputs, and the variables captured by `input` and `whole`."""

    block: Block
    outputs: list[Var] = field(default_factory=list)
    split: dict[Var, Var] = field(default_factory=dict)  # outer variable -> its rows inside
    whole: dict[Var, Var] = field(default_factory=dict)  # outer variable -> all of it inside
    splits: dict[Var, Var] = field(default_factory=dict)  # outer row splits of the rows themselves -> row splits inside
    ragged: dict[Var, "_Ragged"] = field(default_factory=dict)  # outer row splits -> captured sequences


@dataclass(eq=False)
class _Ragged:
    """Sequences, one for each row or for each element of other sequences, restricted to the rows of a block."""

    level: "_Level"
    splits: Var  # inside
    values: dict[Var, Var]  # elements outside -> inside


@dataclass(frozen=True, eq=False)
class _Level:
    """A level of sequences outside: the symbol of their number, their row splits, and the symbol of their elements."""

    rows: str
    splits: Var
    elements: str


class IfElse:
    """Two blocks: one for the rows for which a condition holds, one for the others. Calling it with the condition closes it.

    Inside a block, an outer variable with the leading size of the condition denotes the rows of that block; other variables are the
    same for all rows. `input` and `whole` make this explicit. Sizes are matched by name, never by number.
    """

    def __init__(self) -> None:
        self._around = current_block()
        self._stem = self._around.program.unique("if_else")
        self._sides: dict[bool, _Side] = {}
        self._open: _Side | None = None
        self._called = False

    def true_block(self) -> AbstractContextManager[None]:
        """Open the block of the rows for which the condition holds. Raises ProgramError the second time. An exception discards it."""
        return self._write(True)

    def false_block(self) -> AbstractContextManager[None]:
        """Open the block of the other rows, with the same rules as `true_block`."""
        return self._write(False)

    @contextmanager
    def _write(self, holds: bool) -> Iterator[None]:
        name = "true" if holds else "false"
        if holds in self._sides or self._open is not None or self._called:
            problem = f"it has a {name} block already" if holds in self._sides or self._called else "its other block is open"
            raise ProgramError(f"ifelse: {problem}", location=here())
        require_same_block(current_block(), self._around, f"ifelse.{name}_block")
        try:
            with open_block(f"{self._stem}.{name}", self._around) as block:
                self._open = self._sides[holds] = _Side(block)
                yield
        except BaseException:
            self._sides.pop(holds, None)
            raise
        finally:
            self._open = None

    def _require_open(self, what: str) -> _Side:
        if self._open is None:
            raise ProgramError(f"ifelse.{what}: call it inside `with ie.true_block():` or `with ie.false_block():`", location=here())
        return self._open

    def input(self, var: Var) -> Var:
        """Return the rows of `var` that take this block: T[n *d] -> T[rows *d]. Required only if n is a number, or also occurs in d.

        Each row is complete: for pairwise values, T[n n], the block sees T[rows n], where n refers to all rows, as in `whole`.
        """
        side = self._require_open("input")
        var = require_type(var, "ifelse.input: var")
        if not var.shape:
            raise ShapeError(f'ifelse.input: "{var.name}" has no rows', location=here(), given=[var.describe()])
        if var not in side.split:
            leading, *rest = var.shape
            others = self._others((leading,))  # a row of pairwise values has a value for every row
            rows = leading if isinstance(leading, str) else self._placeholder()
            side.split[var] = self._new_input(side, var, (rows, *(rename(item, others) for item in rest)))
        return side.split[var]

    def whole(self, var: Var) -> Var:
        """Return all rows of `var`, regardless of the condition. Required only if it has the leading size of the condition."""
        side = self._require_open("whole")
        var = require_type(var, "ifelse.whole: var")
        if var not in side.whole:
            others = self._others(var.shape or ())
            side.whole[var] = self._new_input(side, var, tuple(rename(item, others) for item in var.shape or ()))
        return side.whole[var]

    def _placeholder(self) -> str:
        return f"{self._stem}.rows"

    def _others(self, shape: Shape) -> dict[str, str]:
        """Return block-local names for sizes that refer to all rows instead of the rows of the block."""
        return {name: f"{self._stem}.{name}" for item in shape for name in names_in(item)}

    def _new_input(self, side: _Side, var: Var, shape: tuple[Size, ...]) -> Var:
        return side.block.new_var(side.block.program.unique(var.name.partition("@")[0]), var.dtype, shape)

    def output(self, *values: Var) -> None:
        """Output `values`, each with a row for every row of this block. Both blocks must return the same types."""
        side = self._require_open("output")
        side.outputs += require_returned(values, side.block, "ifelse.output")

    def __call__(self, condition: Var) -> Var | tuple[Var, ...]:
        """Close it with `condition`, bool[n] or bool[n 1]; return the merged outputs of both blocks, rows in their original order.

        Returns one variable or a tuple of them. Raises ProgramError or ShapeError, and removes the blocks, if they do not match.
        """
        condition = self._require_complete(condition)
        self._called = True
        try:
            self._require_counts()
            length = condition.shape[0]  # type: ignore[index]
            for holds, side in self._sides.items():
                self._restrict_to_rows(side, length, self._rows_symbol(length, holds))
            self._require_same_types()
        except BaseException:
            for side in self._sides.values():
                self._around.program.discard_block(side.block)
            raise
        flat = condition if len(condition.shape) == 1 else flatten(condition, start=0)  # type: ignore[arg-type]
        yes, no = (self._append(self._sides[holds], flat, holds) for holds in (True, False))
        merged = [merge(flat, first, second) for first, second in zip(yes, no, strict=True)]
        return merged[0] if len(merged) == 1 else tuple(merged)

    def _require_complete(self, condition: Var) -> Var:
        if self._called or self._open is not None:
            raise ProgramError("ifelse: close it once, after its blocks", location=here())
        require_same_block(current_block(), self._around, "ifelse")
        for holds, name in ((True, "true"), (False, "false")):
            if holds not in self._sides:
                raise ProgramError(f"ifelse: it has no {name} block", location=here(), hint=f"write it in `with ie.{name}_block():`")
        condition = require_type(condition, "ifelse: the condition")
        shape = condition.shape or ()
        if condition.dtype is not DType.BOOL or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
            raise ShapeError(
                f"ifelse: the condition must be one bool per row, bool[n] or bool[n, 1], not {condition.type_text}",
                location=here(),
                given=[condition.describe()],
                hint="use ol.cond(condition, ...) for one bool",
            )
        return condition

    def _rows_symbol(self, length: Size, holds: bool) -> str:
        """Return the name for the number of rows of a block: `n.true`."""
        name = f"{length if isinstance(length, str) and length.replace('.', '_').isidentifier() else self._stem}.{str(holds).lower()}"
        program = self._around.program
        return name if program.is_free(name) else program.unique(name)

    def _restrict_to_rows(self, side: _Side, length: Size, symbol: str) -> None:
        """Restrict the block to its rows: row-wise captures become inputs, and its `length` becomes `symbol`."""
        for var in side.split:
            if var.shape[0] != length:  # type: ignore[index]
                raise ShapeError(
                    f'ifelse.input: "{var.name}" has {var.shape[0]} rows, but the condition has {length}',  # type: ignore[index]
                    location=here(),
                    given=[var.describe()],
                    hint="declare both with the same number of rows, by the same name or number",
                )
        side.block.outputs = side.outputs
        names: dict[str, Size] = {self._placeholder(): symbol}
        if isinstance(length, str):
            for var in free_vars(side.block):
                if var.shape and var.shape[0] == length:
                    _require_leading_rows(var, length)
                    if var not in side.split:
                        side.split[var] = self._new_input(side, var, var.shape)
            names |= self._restrict_sequences(side, length)
            self._restrict_splits(side, length)
            replace_reads(side.block, side.split)  # if the length is a number, only results of `input` are row-wise
            names[length] = symbol
        for sizes in (*(var.shape[:1] for var in side.split), *(var.shape or () for var in side.whole)):  # type: ignore[index]
            names |= {other: name for name, other in self._others(sizes).items()}
        rename_sizes(side.block, names)
        _require_leading_elements(side)
        side.outputs = side.block.outputs
        ragged = [var for cut in side.ragged.values() for var in (cut.splits, *cut.values.values())]
        side.block.inputs = [*side.split.values(), *side.whole.values(), *side.splits.values(), *ragged]
        require_consistent(
            side.block,
            "ifelse",
            contract="a block sees only its own rows of variables with the leading size of the condition",
            hint="use ie.whole(x) inside the block for all of x",
        )
        for var in side.outputs:
            if not var.shape or var.shape[0] != symbol:
                raise ShapeError(
                    f'ifelse: "{var.name}" is returned as {var.type_text}, without a row for each of the {symbol} rows of its block',
                    location=here(),
                    given=[var.describe()],
                    contract="the outputs of a block have its rows",
                    hint=_rows_hint(var, length),
                )

    def _restrict_sequences(self, side: _Side, length: str) -> dict[str, Size]:
        """Restrict the ragged values that have a sequence for each row to those of the block's rows; return new names of their sizes.

        Elements may themselves be sequences, at any number of levels.
        """
        names: dict[str, Size] = {}
        for var in free_vars(side.block):
            size = var.row_splits_of or (var.shape[0] if var.shape else None)
            for level in self._levels(size, length):
                splits = level.splits
                if splits not in side.ragged:
                    inside = self._new_input(side, splits, (add(level.rows, 1),))
                    inside.row_splits_of = level.elements
                    side.ragged[splits] = _Ragged(level, inside, {})
                    names[level.elements] = self._around.program.unique(f"{level.elements}.{side.block.name.rpartition('.')[2]}")
                if level.elements == size and var is not splits:
                    side.ragged[splits].values[var] = self._new_input(side, var, var.shape or ())
        for splits, cut in side.ragged.items():
            replace_reads(side.block, {splits: cut.splits, **cut.values})
        return names

    def _levels(self, size: Size | None, length: str) -> list[_Level]:
        """Return the levels of sequences that split a dimension into `length` rows, outermost first; empty if there are none."""
        levels: list[_Level] = []
        while isinstance(size, str) and size != length:
            splits = self._around.splits_of(size)
            rows = None if splits is None else add(splits.shape[0], -1)  # type: ignore[index]
            if splits is not None and isinstance(rows, str):
                levels.insert(0, _Level(rows, splits, size))
            size = rows
        return levels if size == length else []

    def _restrict_splits(self, side: _Side, length: str) -> None:
        """If the rows are themselves elements of sequences, give the block the row splits of its own rows."""
        for splits in free_vars(side.block):
            if splits.row_splits_of == length:
                side.splits[splits] = self._new_input(side, splits, splits.shape or ())
                side.splits[splits].row_splits_of = length
        replace_reads(side.block, side.splits)

    def _require_counts(self) -> None:
        counts = [len(self._sides[holds].outputs) for holds in (True, False)]
        if counts[0] != counts[1] or not counts[0]:
            raise ProgramError(
                f"ifelse: the true block returns {count_values(counts[0])}, the false block {counts[1] or 'none'}",
                location=here(),
                contract="both blocks return the same number of values, at least one",
                hint="ie.output(...) in each block",
            )

    def _require_same_types(self) -> None:
        for number, (yes, no) in enumerate(zip(self._sides[True].outputs, self._sides[False].outputs, strict=True)):
            if yes.dtype is not no.dtype or yes.shape[1:] != no.shape[1:]:  # type: ignore[index]
                raise ShapeError(
                    f"ifelse: output {number} is {yes.type_text} from the true block but {no.type_text} from the false block",
                    location=here(),
                    given=[yes.describe(), no.describe()],
                    contract="both blocks return the same types",
                )

    def _append(self, side: _Side, condition: Var, holds: bool) -> list[Var]:
        """Append the ops that run one block on its rows; return their results."""
        chosen = nonzero(condition, value=holds)
        if side.split:
            chosen.shape = (next(iter(side.split.values())).shape[0],)  # type: ignore[index]
        else:
            chosen.shape = (side.outputs[0].shape[0],)  # type: ignore[index]
        self._around.program.claim_symbols(chosen.shape)
        values = [gather(var, chosen) for var in side.split]
        sequences = [sequence_splits(splits, chosen) for splits in side.splits]
        length = condition.shape[0]  # type: ignore[index]
        numbers: dict[Size, Var] = {length: chosen}
        for splits, cut in side.ragged.items():
            like = condition if cut.level.rows == length else sequence_lengths(splits)
            elements, own = sequence_elements(splits, numbers[cut.level.rows], like)
            assert cut.splits.row_splits_of is not None
            elements.shape = (cut.splits.row_splits_of,)
            self._around.program.claim_symbols(elements.shape)
            numbers[cut.level.elements] = elements
            sequences += [own, *(gather(var, elements) for var in cut.values)]
        return conditional_block([*values, *side.whole, *sequences], free_vars(side.block), body=side.block, name=f"{side.block.name}.out")


def _require_leading_rows(var: Var, length: str) -> None:
    """Raise ShapeError if `length` occurs outside the first dimension too, which makes the rows of a block ambiguous."""
    if any(length in names_in(item) for item in (var.shape or ())[1:]):
        raise ShapeError(
            f'ifelse: "{var.name}" has the size {length} of the condition in more than one dimension, so its rows are ambiguous',
            location=here(),
            given=[var.describe()],
            hint="use ie.input(x) for its rows or ie.whole(x) for all of x, or rename the other size",
        )


def _require_leading_elements(side: _Side) -> None:
    """Raise ShapeError if a captured variable would be restricted outside its first dimension."""
    for cut in (side.split, *(each.values for each in side.ragged.values())):
        for var, inside in cut.items():
            changed = [size for size, seen in zip(var.shape[1:], inside.shape[1:], strict=True) if size != seen]  # type: ignore[index]
            if changed:
                raise ShapeError(
                    f'ifelse: "{var.name}" has the size {changed[0]} outside its first dimension, but a block sees only a part of it',
                    location=here(),
                    contract="a block sees a selection of the first dimension only",
                    given=[var.describe()],
                    hint="use ie.whole(x) inside the block for all of x, or rename the other size",
                )


def _rows_hint(var: Var, length: Size) -> str:
    """Return a hint for an output of a block that does not have a row for each row of the block."""
    if var.shape and var.shape[0] == length and isinstance(length, int):
        return "if the number of rows is not symbolic, use ie.input(x) inside the block for the rows of x"
    return "keep the rows, for example x * 0.0 + value"


def ifelse() -> IfElse:
    """Create two blocks; each row of a batch takes one of them. The condition is given when it is called."""
    return IfElse()

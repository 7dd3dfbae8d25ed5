"""The rows of a program's inputs: the axis along which the workers divide each input."""

from collections.abc import Collection, Sequence

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.size import names_in
from oarlock.ir.var import Var
from oarlock.passes.parallel.placement import REPLICATED, Placement, sharded, splits
from oarlock.passes.rows import is_multiple
from oarlock.suggestions import list_names

__all__ = ["placements_of_inputs"]

_USUAL = "n"  # by this name `ol.layer.data` calls the rows by default


def placements_of_inputs(program: Program, rows: str | None = None) -> dict[Var, Placement]:
    """Return the placement of each input: sharded along the axis whose size counts `rows`, row splits of a worker's rows, or replicated.

    By default each symbol that leads an input counts rows. Where an input has two of them, such as [t, n, d], `n` is the one that counts,
    if it leads another input. Raises ProgramError where it does not, for an input that has the rows along two axes, and for a program
    without rows; ArgumentError where no input has the size `rows`.
    """
    ragged = program.ragged_inputs()
    cutting = {level for levels in ragged.values() for level in levels}
    dense = [var for var in program.main.inputs if var not in ragged and var not in cutting]
    sequences = {name for levels in ragged.values() for name in names_in((levels[0].shape or (0,))[0])}
    counting = _counting(dense, sequences) if rows is None else _require_size(dense, rows)
    placements: dict[Var, Placement] = {}
    for var in program.main.inputs:
        placements[var] = splits() if var in cutting else sharded() if var in ragged else _placement(var, counting)
    counted = [(var.shape or ())[placement.axis] for var, placement in placements.items() if placement.by_rows]
    if not ragged and counting.isdisjoint(counted):  # such as 2*n, of which nothing tells n
        raise ProgramError(
            "no input of this program leads with rows, so workers have none of their own",
            location=here(),
            given=[var.describe() for var in program.main.inputs],
        )
    return placements


def _counting(dense: Sequence[Var], sequences: Collection[str]) -> set[str]:
    """The symbols that count rows. Raises ProgramError where one input has two of them."""
    leading = {str(var.shape[0]) for var in dense if var.shape and names_in(var.shape[0]) == {var.shape[0]}} | set(sequences)
    if not leading:
        return {_USUAL}
    if _USUAL in leading:
        leading -= {name for var in dense if _USUAL in _names(var) for name in _names(var) if name != _USUAL}
    for var in dense:
        found = [name for name in _names(var) if name in leading or name == _USUAL]
        if len(found) > 1:
            raise ProgramError(
                f'"{var.name}" has the sizes {" and ".join(found)}, and each of them may count the rows that workers divide',
                location=here(),
                given=[each.describe() for each in dense if not set(found).isdisjoint(_names(each))],
                hint=f'data_parallel(program, rows="{found[1]}") says which; by default it is a size called {_USUAL} that leads an input',
            )
    return leading


def _names(var: Var) -> list[str]:
    """The symbols in the sizes of a variable, each once, in their order."""
    return list(dict.fromkeys(name for size in var.shape or () for name in sorted(names_in(size))))


def _require_size(dense: Sequence[Var], rows: object) -> set[str]:
    known = list(dict.fromkeys(name for var in dense for name in _names(var)))
    if not isinstance(rows, str) or rows not in known:
        there = f"there are: {list_names(str(rows), known) or 'none'}"
        raise ArgumentError(f"rows is a size of the inputs, not {rows!r:.60}", location=here(), given=[there])
    return {rows}


def _placement(var: Var, counting: Collection[str]) -> Placement:
    """The placement of an input that is not ragged. Raises ProgramError for rows along two axes."""
    found = [(axis, name) for axis, size in enumerate(var.shape or ()) for name in names_in(size) if name in counting]
    if not any(is_multiple((var.shape or ())[axis], name) for axis, name in found):
        return REPLICATED
    if len(found) > 1:
        raise ProgramError(
            f'"{var.name}" has the rows {found[0][1]} along two axes, so workers cannot divide it',
            location=here(),
            given=[var.describe()],
            hint="call one of the sizes otherwise: what is not divided is the same on every worker",
        )
    return sharded(found[0][0])

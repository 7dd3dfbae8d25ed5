"""The passes that a plan applies, in their order."""

from collections.abc import Callable, Collection, Iterable

from oarlock.errors import VerifyError
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.verify import verify_program
from oarlock.passes.accumulating import accumulate
from oarlock.passes.common_subexpressions import share
from oarlock.passes.exchanging import exchange
from oarlock.passes.folding import fold
from oarlock.passes.fusing import fuse
from oarlock.passes.grouping import group
from oarlock.passes.identities import simplify
from oarlock.passes.inlining import inline
from oarlock.passes.invariants import hoist
from oarlock.passes.joining import join
from oarlock.passes.lifting import lift
from oarlock.passes.pruning import remove_dead_code
from oarlock.passes.reductions import fuse_reductions
from oarlock.passes.rotating import rotate
from oarlock.passes.scalars import scalarize
from oarlock.passes.sinking import sink
from oarlock.passes.transposing import transpose
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.checking import typecheck

__all__ = ["PASSES", "apply", "begin", "in_turn", "optimize"]

PASSES: dict[str, Callable[[Program, Catalogue], int]] = {
    "inline": inline,
    "simplify": simplify,
    "fold": fold,
    "share": share,
    "scalarize": scalarize,
    "fuse_reductions": fuse_reductions,
    "hoist": hoist,
    "lift": lift,
    "sink": sink,
    "rotate": rotate,
    "exchange": exchange,
    "fuse": fuse,
    "accumulate": accumulate,
    "join": join,
    "transpose": transpose,
    "group": group,
}
"""Each changes a program in place and returns how often it applied."""

_LAST = {"join", "transpose", "group"}


def optimize(
    program: Program,
    wanted: Iterable[Var],
    catalogue: Catalogue,
    passes: Collection[str] = tuple(PASSES),
    *,
    checked: bool = False,
) -> dict[str, int]:
    """Rewrite `program` so that `wanted`, and its updates, are computed faster; return how often each pass applied.

    Passes are applied `in_turn`; what nothing needs is dropped before and after. `wanted` become the targets of the program. Where it is
    `checked`, the program is verified and typechecked after each pass; an error names the pass.
    """
    begin(program, wanted)
    applied = dict.fromkeys((name for name in PASSES if name in passes), 0)
    idle: set[str] = set()  # those that have nothing to do as long as no other pass changes the program
    for name in in_turn(passes):
        if name in idle:
            continue
        count = apply(name, program, catalogue)
        idle = set() if count else idle | {name}
        applied[name] += count
        if checked:
            _check(program, catalogue, name)
    return applied


def begin(program: Program, wanted: Iterable[Var]) -> None:
    """Make `wanted` the targets of `program`, and drop what nothing needs."""
    program.targets = {f"wanted_{number}": var for number, var in enumerate(wanted)}
    remove_dead_code(program.main, program.targets.values())


def in_turn(passes: Collection[str]) -> list[str]:
    """The passes as they are applied: twice, since one makes room for another, but for those after which others find less to do."""
    chosen = [name for name in PASSES if name in passes]
    first = [name for name in chosen if name not in _LAST]
    return [*first, *first, *(name for name in chosen if name in _LAST)]


def apply(name: str, program: Program, catalogue: Catalogue) -> int:
    """Apply one pass and drop what nothing needs any more; return how often it applied. At 0 the program is as it was."""
    before = _number_of_ops(program)
    count = PASSES[name](program, catalogue)
    if count or _number_of_ops(program) != before:  # what found no reader, such as a constant, is dropped too
        remove_dead_code(program.main, program.targets.values())
    return count


def _number_of_ops(program: Program) -> int:
    return sum(len(block.ops) for block in program.blocks)


def _check(program: Program, catalogue: Catalogue, after: str) -> None:
    """Raise VerifyError where the pass `after` has left an illegal program."""
    try:
        verify_program(program)
        typecheck(program, catalogue)
    except VerifyError as error:
        raise VerifyError(f"after the pass {after}: {error.message}", given=program.to_text(source=False).splitlines()) from error

"""The passes that a plan applies, in their order."""

from collections.abc import Callable, Collection, Iterable

from oarlock.errors import ArgumentError, VerifyError
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.ir.verification import verify_program
from oarlock.old_names import OLD_PASSES, renamed
from oarlock.passes.batch_epilogue import batch_epilogue
from oarlock.passes.batch_prologue import batch_prologue
from oarlock.passes.canonicalization import canonicalize
from oarlock.passes.commute_gather_matmul import commute_gather_matmul
from oarlock.passes.constant_folding import constant_folding
from oarlock.passes.cse import cse
from oarlock.passes.flatten_rows import flatten_rows
from oarlock.passes.fusion.multi_output import multi_output_fusion
from oarlock.passes.fusion.multi_tensor import multi_tensor_updates
from oarlock.passes.fusion.reductions import fuse_reductions
from oarlock.passes.fusion.sums import fuse_sums
from oarlock.passes.fusion.updates import fuse_updates
from oarlock.passes.hoist_transposes import hoist_transposes
from oarlock.passes.inlining import inline
from oarlock.passes.licm import licm
from oarlock.passes.loop_retiming import loop_retiming
from oarlock.passes.overlap_exchanges import overlap_exchanges
from oarlock.passes.pruning import remove_dead_code
from oarlock.passes.segment_loops import segment_loops
from oarlock.passes.splat_propagation import splat_propagation
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.type_check import typecheck
from oarlock.suggestions import did_you_mean

__all__ = ["PASSES", "apply", "begin", "in_turn", "optimize", "require_passes"]

PASSES: dict[str, Callable[[Program, Catalogue], int]] = {
    "inline": inline,
    "canonicalize": canonicalize,
    "constant_folding": constant_folding,
    "cse": cse,
    "splat_propagation": splat_propagation,
    "fuse_reductions": fuse_reductions,
    "segment_loops": segment_loops,
    "licm": licm,
    "batch_prologue": batch_prologue,
    "batch_epilogue": batch_epilogue,
    "loop_retiming": loop_retiming,
    "commute_gather_matmul": commute_gather_matmul,
    "fuse_sums": fuse_sums,
    "fuse_updates": fuse_updates,
    "flatten_rows": flatten_rows,
    "multi_output_fusion": multi_output_fusion,
    "hoist_transposes": hoist_transposes,
    "multi_tensor_updates": multi_tensor_updates,
    "overlap_exchanges": overlap_exchanges,
}
"""Each changes a program in place and returns how often it applied."""

_LAST = {"multi_output_fusion", "hoist_transposes", "multi_tensor_updates", "overlap_exchanges"}


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
    `checked`, the program is verified and typechecked after each pass that applied, and at the end; an error names the pass.
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
        if checked and count:
            _check(program, catalogue, f"after the pass {name}")
    if checked:  # by now every pass has been there, those too that say they changed nothing
        _check(program, catalogue, "after all passes")
    return applied


def require_passes(names: Iterable[str], others: Iterable[str] = ()) -> tuple[str, ...]:
    """The passes of these names, or of `others`. Raises ArgumentError for a name that no pass has; an old name warns."""
    there = (*PASSES, *others)
    known = []
    for name in names:  # not a comprehension, which is a frame more to Python 3.11
        known.append(renamed("pass", name, OLD_PASSES))
    unknown = [name for name in known if name not in there]
    if unknown:
        raise ArgumentError(
            f'there is no pass "{unknown[0]:.80}"',
            given=[f"the passes are {', '.join(there)}"],
            hint=did_you_mean(unknown[0], there),
        )
    return tuple(known)


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


def _check(program: Program, catalogue: Catalogue, when: str) -> None:
    """Raise VerifyError where the program is illegal, and say `when` it was found to be."""
    try:
        verify_program(program)
        typecheck(program, catalogue)
    except VerifyError as error:
        raise VerifyError(f"{when}: {error.message}", given=program.to_text(source=False).splitlines()) from error

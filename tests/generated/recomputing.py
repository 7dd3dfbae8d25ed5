"""Recomputation: gradients that compute forward values again are what they were."""

from random import Random

import oarlock as ol
from generated.making import Case
from generated.running import differentiate, require_alike, require_all_same, require_planned, run
from oarlock.ir.operation import Role
from oarlock.ir.traversal import walk
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal

__all__ = ["check_recomputation"]


def check_recomputation(case: Case, random: Random) -> int:
    """Divide a program at random; return how many ops are computed again. Raises DisagreementError."""
    program, found = differentiate(case.program, case)
    names = [var.name for var in found if var is not None]
    if not any(op.role is Role.BACKWARD for op in program.main.ops):
        return 0
    before = run(program, case.arrays, names)
    computed = [var for op in walk(program.main) if op.role is Role.FORWARD and not op.is_commit for var in op.writes]
    checkpoints = random.sample(computed, min(len(computed), random.choice((0, 1, 3))))
    divided = any(var.block is program.main for var in checkpoints)
    segments = None if divided else random.choice((None, 1, 2, 5))
    count = ol.passes.recompute(program, checkpoints, segments=segments, loops=random.random() < 0.7)
    require_legal(program, standard)
    require_all_same("recomputed", run(program, case.arrays, names), before)
    require_planned(program, "recomputed by a plan", run(program, case.arrays, names, ol.Executor(passes=())), before)
    require_alike("recomputed after the passes", run(program, case.arrays, names, ol.Executor()), before)
    read = ol.Program.from_bytes(program.to_bytes())
    require_all_same("recomputed, from a file", run(read, case.arrays, names), before)
    return count

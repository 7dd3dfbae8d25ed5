"""Several workers, each with some of the rows, beside one with all of them: what `data_parallel` makes of a program and its updates.

PYTHONPATH=src:tests python -m generated.workers --seed 20 --count 300
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import numpy
from thread_workers import ThreadWorkers, run_together
from tolerances import GENERATED_GRADIENTS

import oarlock as ol
from generated.counting import count_checks, numbered
from generated.making import Case
from generated.running import Arrays, DisagreementError, feed_of, require_close, scope_of
from generated.training import trained
from oarlock.ir.size import add
from oarlock.passes.parallel.analysis import Analysis
from oarlock.passes.parallel.input_rows import placements_of_inputs
from oarlock.passes.parallel.placement import REPLICATED, Kind, Placement
from oarlock.passes.parallel.rewrite import data_parallel
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal

__all__ = ["check_workers"]

STEPS = 2


def check_workers(case: Case, random: Random, count: int = 2) -> set[str]:
    """Run a program and its updates by `count` workers, to whom its rows are dealt at random; return what was exchanged.

    Raises DisagreementError where parameters, or what is fetched, are not what one worker has.
    """
    program, names = trained(case, random)
    rows = random.choice((None, "n", "t"))  # "n" counts the second axis of what comes time first
    try:
        placements = placements_of_inputs(program, rows)
    except (ol.ArgumentError, ol.ProgramError):
        return set()  # it has no rows, or one input has them twice
    analysis = Analysis(standard)
    analysis.run(program.main, placements)
    parted = program.clone()
    data_parallel(parted, rows=rows)
    try:
        require_legal(parted, standard)
    except ol.errors.VerifyError:  # of a branch by an input that leads with another size than that of rows, which is taken for rows
        if any(placement is REPLICATED and var.shape and isinstance(var.shape[0], str) for var, placement in placements.items()):
            return set()
        raise
    feeds = _deal(program, placements, feed_of(program, case.arrays), random, count)
    whole = _steps(program, case, names, feed_of(program, case.arrays), ol.Executor(interpret=True))
    for interpret in (True, False):
        executors = partial(ol.Executor, interpret=interpret)
        found = run_together(count, partial(_steps_of, parted, case, names, feeds, executors))
        logs = [[what for what, _ in log] for _, _, log in found]
        if any(log != logs[0] for log in logs):
            raise DisagreementError("workers", f"they exchanged other things: {logs}")
        for number, (_, state, _) in enumerate(found):
            for name, value in whole[1].items():
                require_close("workers", f'"{name}" of worker {number}', state[name], value, GENERATED_GRADIENTS)
        for step in range(STEPS):
            for name in names:
                parts = [values[step][name] for values, _, _ in found]
                placed = analysis.placed.get(program.main.vars[name], REPLICATED)
                if placed.kind is Kind.SHARDED:
                    parts = [numpy.concatenate(parts, placed.axis)]
                elif placed.kind in (Kind.NUMBERS, Kind.SPLITS):
                    continue
                for part in parts:
                    require_close("workers", f'"{name}"', part, whole[0][step][name], GENERATED_GRADIENTS)
    inside = {"workers: rows inside"} if any(placement.by_rows and placement.axis for placement in placements.values()) else set()
    return inside | {f"workers: {op.type}" for block in parted.blocks for op in block.ops if standard.get(op.type).effects == "collective"}


def _steps_of(program: ol.Program, case: Case, names: Sequence[str], feeds: Sequence[Arrays], executors, workers: ThreadWorkers):
    return _steps(program, case, names, feeds[workers.index], executors(workers=workers))


def _steps(program: ol.Program, case: Case, names: Sequence[str], feed: Arrays, executor: ol.Executor) -> tuple[list[dict], dict, list]:
    scope = scope_of(program, case.arrays)
    values = [dict(zip(names, executor.run(program, feed, names, scope=scope), strict=True)) for _ in range(STEPS)]
    return values, {var.name: scope[var.name].numpy() for var in program.persistables()}, getattr(executor.workers, "log", [])  # type: ignore[attr-defined]


def _deal(
    program: ol.Program, placements: Mapping[ol.Var, Placement], feed: Arrays, random: Random, count: int
) -> list[dict[str, numpy.ndarray]]:
    """The feeds of the workers: of each size that counts rows, each gets some, one after another."""
    cuts: dict[object, list[int]] = {}
    ragged = program.ragged_inputs()
    for levels in ragged.values():
        for splits in levels:
            rows = add(splits.shape[0], -1)  # type: ignore[index]
            whole = feed[splits.name]
            at = cuts.setdefault(rows, _cut(len(whole) - 1, random, count))
            cuts[splits.row_splits_of] = [int(whole[each]) for each in at]
    for var, placement in placements.items():
        if placement.kind is Kind.SHARDED:
            cuts.setdefault(var.shape[placement.axis], _cut(feed[var.name].shape[placement.axis], random, count))  # type: ignore[index]
    dealt: list[dict[str, numpy.ndarray]] = []
    for number in range(count):
        own: dict[str, numpy.ndarray] = {}
        for var, placement in placements.items():
            value = feed[var.name]
            if placement.kind is Kind.SHARDED:
                at = cuts[var.shape[placement.axis]]  # type: ignore[index]
                value = value.take(range(at[number], at[number + 1]), placement.axis)
            elif placement.kind is Kind.SPLITS:
                at = cuts[add(var.shape[0], -1)]  # type: ignore[index]
                value = value[at[number] : at[number + 1] + 1]
                value = value - value[0]
            own[var.name] = value
        dealt.append(own)
    return dealt


def _cut(rows: int, random: Random, count: int) -> list[int]:
    return [0, *sorted(random.randint(0, rows) for _ in range(count - 1)), rows]


def main() -> int:
    parser = numbered("generated.workers", "Deal the rows of random programs to workers.")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    return count_checks(arguments, partial(check_workers, count=arguments.workers), "of which workers exchange something in")


if __name__ == "__main__":
    sys.exit(main())

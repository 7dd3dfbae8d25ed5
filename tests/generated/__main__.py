"""The command; `generated` says how it is called."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from generated.checking import check
from generated.keeping import KEPT, write_case
from generated.making import Case, make
from generated.shrinking import shrink
from generated.training import ALONE, FIRED
from oarlock.passes.pipeline import PASSES

MAX_FAILURES = 20  # what is broken that much is seen by then


ENOUGH = 300  # programs, for each pass to have something to do
ELSEWHERE = ("segment_loops", "overlap_exchanges")  # which `generated.recomputing` and, for several workers, `generated.workers` check
PAIRS = 10  # every so many programs, all pairs of passes are tried
OTHERS = 1  # of the other ways to use a program, how many are checked where it shall be quick


def run(
    seed: int, numbers: range, keep: Path, *, show: bool = False, quick: bool = True, max_failures: int = MAX_FAILURES
) -> tuple[Counter[str], list[str]]:
    """Make and check programs, one after another; return how many have each feature, and what failed.

    Passes are tried alone and in pairs, and a program is used in other ways: in some with each program or, where that is not
    `quick`, in all of them.
    """
    features: Counter[str] = Counter()
    failures = []
    for number in numbers:
        case, pairs = None, not quick and number % PAIRS == 0
        try:
            case = make(seed, number)
            if show:
                print(case.program.to_text(source=False))
                print("targets:", case.targets, "wanted:", case.wanted)
            features.update(case.features | check(case, passes=not quick, pairs=pairs, others=OTHERS if quick else None))
        except Exception as error:
            path = keep / f"{seed}-{number}.json"
            told = (
                f"making: {type(error).__name__}: {error}"
                if case is None
                else _keep(case, path, passes=not quick, pairs=pairs, others=OTHERS if quick else None)
            )
            failures.append(f"--seed {seed} --only {number}: {told}")
            print(f"FAILED {failures[-1]}", flush=True)
            if len(failures) == max_failures:
                break
    return features, failures


def _keep(case: Case, path: Path, *, passes: bool, pairs: bool, others: int | None) -> str:
    """Make a case that fails smaller, and write it; return what it fails with, and where it is."""
    smaller, error = shrink(case, passes=passes, pairs=pairs, others=others)
    write_case(smaller, path, f"{type(error).__name__}: {error}")
    return f"{type(error).__name__}: {error}\n  kept as {path}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m generated", description="Make random programs and check what they compute.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program, for a run in pieces")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only", type=int, help="make, print and check this one program")
    parser.add_argument("--keep", type=Path, default=KEPT, help="a folder for the programs that fail, made smaller")
    parser.add_argument("--quick", action="store_true", help="a few combinations of passes and one of the other ways, not all")
    arguments = parser.parse_args()
    first, count = (arguments.first, arguments.count) if arguments.only is None else (arguments.only, 1)
    numbers = range(first, first + count)
    begun = time.monotonic()
    features, failures = run(arguments.seed, numbers, arguments.keep, show=arguments.only is not None, quick=arguments.quick)
    fired = {name: (features.pop(FIRED + name, 0), features.pop(ALONE + name, 0)) for name in PASSES}
    for feature, times in sorted(features.items(), key=lambda item: (-item[1], item[0])):
        print(f"{times:8,}  {100 * times / len(numbers):5.1f} %  {feature}")
    for name, (among, alone) in fired.items():
        told = "" if arguments.quick else f", {alone:,} for it alone"
        print(f"{among:8,}  {100 * among / len(numbers):5.1f} %  have something to do for the pass {name}{told}")
    idle = [name for name, (among, _) in fired.items() if not among and name not in ELSEWHERE] if len(numbers) >= ENOUGH else []
    if idle:
        print(f"FAILED: nothing was ever done by {', '.join(idle)}")
    seconds = time.monotonic() - begun
    print(f"{count:,} programs from {first:,}, seed {arguments.seed}, in {seconds:.0f} s: {len(failures)} failed")
    return 1 if failures or idle else 0


if __name__ == "__main__":
    sys.exit(main())

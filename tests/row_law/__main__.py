"""The command: trials of all operators, slots and axes in turn. PYTHONPATH=src:tests python -m row_law --seed 0 --count 20000"""

import argparse
import sys
import time
import warnings

from row_law.running import OPERATORS, Outcome, read_unreached, targets_of, try_operator


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m row_law", description="Hold every operator to what is said of where its rows are.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000, help="trials")
    parser.add_argument("--only", nargs="+", default=[], metavar="OPERATOR")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begun, outcome = time.monotonic(), Outcome()
    operators = [operator for operator in OPERATORS if not arguments.only or operator.type in arguments.only]
    targets = [target for operator in operators for target in targets_of(operator)]
    number = 0
    while targets and outcome.trials < arguments.count and number < 10 * arguments.count:
        before = outcome.trials
        for target in targets:
            shown = len(outcome.failures)
            try_operator(target, arguments.seed + number, outcome)
            for failure in outcome.failures[shown:]:
                print(f"FAILED {failure}", flush=True)
            if outcome.trials >= arguments.count:
                break
        if outcome.trials == before:
            break
        number += 1
    names = {(operator.type, slot, axis) for operator, slot, axis in targets}
    left = sorted(names - outcome.reached)
    listed = {".".join(map(str, target)): "refused with any size but that of its case" for target in outcome.refused} | read_unreached()
    for target in left:
        text = ".".join(map(str, target))
        print(f"not reached: {text}: {listed.get(text, 'NOT LISTED')}")
    unlisted = [target for target in left if ".".join(map(str, target)) not in listed]
    print(", ".join(f"{count:,} {what}" for what, count in sorted(outcome.compared.items())))
    seconds = time.monotonic() - begun
    print(f"{outcome.trials:,} trials of {len(operators)} operators in {seconds:.0f} s: {len(outcome.failures)} failures")
    told = f"{len(left) - len(unlisted)} not, with a reason, {len(unlisted)} without"
    print(f"{len(outcome.reached):,} of {len(names):,} slots and axes reached; {told}")
    return int(bool(outcome.failures) or bool(unlisted))


if __name__ == "__main__":
    sys.exit(main())

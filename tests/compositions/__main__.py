"""The command; `compositions` says how it is called."""

import argparse
import sys
from collections import Counter
from random import Random

import oarlock as ol
from compositions.checking import DisagreementError, check, operators_of
from compositions.making import make

__all__ = ["main", "run"]


def run(seed: int, numbers: range, *, show: bool = False) -> tuple[Counter[str], Counter[str], list[str]]:
    """Check the compositions of these numbers; return how they ended, how often each operator stood in them, and what failed."""
    outcomes, operators, failures = Counter[str](), Counter[str](), []
    for number in numbers:
        try:
            composition = make(seed, number)
            operators += operators_of(composition.program)
            if show:
                print(composition.program.to_text(source=False), composition.feed, sep="\n")
            outcomes[check(composition, Random(number))] += 1
        except DisagreementError as error:
            outcomes["failed"] += 1
            failures.append(f"--seed {seed} --only {number}: {error}")
        except ol.OarlockError as error:
            outcomes["failed"] += 1
            failures.append(f"--seed {seed} --only {number}: {type(error).__name__}: {error}")
    return outcomes, operators, failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compositions", description="Random compositions of all operators.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", type=int, help="one, which is printed")
    arguments = parser.parse_args()
    first, count = (arguments.first, arguments.count) if arguments.only is None else (arguments.only, 1)
    outcomes, operators, failures = run(arguments.seed, range(first, first + count), show=arguments.only is not None)
    for failure in failures:
        print(failure)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()))
    print(f"{len(operators)} operators; least often: {', '.join(f'{name} {count}' for name, count in operators.most_common()[:-9:-1])}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""One process of `generated.faults`: programs are made and checked until a check fails.

The last line that it prints is {"programs": how many were made by then, or null, "reason": the error}. A program that takes longer than
a minute ends the process with an error: that is no failing check.
"""

import json
import signal
import sys
import warnings
from pathlib import Path
from random import Random

from row_law.running import OPERATORS, Outcome, targets_of, try_operator

import oarlock
from generated.checking import check
from generated.making import make
from generated.workers import check_workers

ROWS = "R1"  # the class of faults that the law of rows and workers find
SECONDS = 60  # for one program, which takes a fraction of one; a fault may make a loop that never ends


def check_rows(seed: int, number: int) -> None:
    """Try the law of rows on one operator; of every eighth number, deal the rows of a program to workers. Raises AssertionError."""
    if number % 8 == 0:
        check_workers(make(seed, number), Random(number))
        return
    random, outcome = Random(f"{seed} {number}"), Outcome()
    targets = targets_of(random.choice(OPERATORS))
    if targets:
        try_operator(random.choice(targets), number, outcome)
    assert not outcome.failures, outcome.failures[0]


def main(kind: str, seed: int, count: int, source: Path) -> None:
    if not Path(oarlock.__file__).resolve().is_relative_to(source.resolve()):
        raise SystemExit(f"oarlock comes from {oarlock.__file__}, not from {source}")
    found: dict[str, object] = {"programs": None, "reason": f"no check of {count:,} programs fails"}
    for number in range(count):
        signal.alarm(SECONDS)  # the signal ends the process
        try:
            if kind == ROWS:
                check_rows(seed, number)
            else:
                check(make(seed, number))
        except Exception as error:
            found = {"programs": number + 1, "reason": f"{type(error).__name__}: {error}".partition("\n")[0]}
            break
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))

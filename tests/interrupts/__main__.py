"""The command; `interrupts` says how it is called."""

import argparse
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from interrupts.trying import longest_run, prepare, try_once

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m interrupts", description="Interrupt `oarlock train` at random moments.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--patience", type=float, default=2.0, help="seconds that it may take to end")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what runs in the background ignore it, and so would the runs
    outcomes: Counter[str] = Counter()
    failures, slowest = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        whole = longest_run(folder)
        for number in range(arguments.count):
            after = Random(f"{arguments.seed} {number}").uniform(0.0, whole * 1.1)
            tried = try_once(folder, after, patience=arguments.patience)
            outcomes[tried.outcome] += 1
            slowest = max(slowest, tried.seconds)
            if tried.fault:
                failures.append(f"number {number}, after {after:.3f} s: {tried.fault}")
                print(failures[-1], flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count:6,}  {outcome}")
    print(f"longest   {slowest:.2f} s from the signal to the end")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The command; `hostile_values` says how it is called."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from hostile_values.children import run

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostile_values", description="Run operators on hostile values, in child processes.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--only", type=int, help="run this one trial")
    arguments = parser.parse_args()
    numbers = range(arguments.count) if arguments.only is None else range(arguments.only, arguments.only + 1)
    with tempfile.TemporaryDirectory() as folder:
        tally = run(arguments.seed, numbers, Path(folder))
    for outcome, count in tally.outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    print(
        f"{tally.trials:8,}  trials of {tally.uses} uses, {sum(tally.outcomes.values()):,} runs"
        + ("" if tally.guarded else "; memory unguarded")
    )
    print("\n".join(tally.failures[:50]))
    print(f"{tally.signals} signals, {len(tally.failures)} failures")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

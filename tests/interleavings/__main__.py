"""The command; `interleavings` says how it is called."""

import argparse
import sys
import time
from collections import Counter

from interleavings.playing import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m interleavings", description="Run, read, hold and write by turns.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--only", type=int, help="the number of one interleaving, which is printed")
    arguments = parser.parse_args()
    began, done, failed = time.perf_counter(), Counter[str](), []
    for number in range(arguments.count) if arguments.only is None else [arguments.only]:
        actions, failure = play(arguments.seed, number)
        done.update(action.partition(" ")[0] for action in actions)
        if arguments.only is not None:
            print("\n".join(actions))
        if failure is not None:
            failed.append(number)
            print(f"{number}: {failure}", flush=True)
    print(", ".join(f"{count:,} {action}" for action, count in sorted(done.items())))
    print(f"{len(failed)} failed of {arguments.count if arguments.only is None else 1:,}, {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

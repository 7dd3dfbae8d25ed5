"""The command of one check of random programs: each failure is a line, and at the end stands in how many programs there was work to do."""

import argparse
import time
from collections.abc import Callable
from random import Random

from generated.making import Case, make

__all__ = ["count_checks", "numbered"]


def numbered(name: str, description: str) -> argparse.ArgumentParser:
    """The arguments that such a command takes: which programs, by a seed and their numbers."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=300)
    return parser


def count_checks(
    arguments: argparse.Namespace, check: Callable[[Case, Random], object], work: str, make: Callable[[int, int], Case] = make
) -> int:
    """Check the programs that the arguments name, print what failed and in how many there was `work`; the exit status."""
    begun, failures, worked = time.monotonic(), 0, 0
    for number in range(arguments.first, arguments.first + arguments.count):
        try:
            worked += bool(check(make(arguments.seed, number), Random(number)))
        except Exception as error:
            failures += 1
            print(f"FAILED {number}: {type(error).__name__}: {str(error).partition(chr(10))[0]}", flush=True)
    seconds = time.monotonic() - begun
    print(f"{arguments.count:,} programs, {work} {worked:,}, in {seconds:.0f} s: {failures} failed")
    return int(failures > 0)

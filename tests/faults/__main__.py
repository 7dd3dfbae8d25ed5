"""The command; `faults` says how it is called."""

import argparse
import sys

from faults.catching import is_caught, without_fault
from faults.seeded import FAULTS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m faults", description="Break rules of the verifier, and what went unnoticed once, one at a time."
    )
    parser.add_argument("--only", type=int, nargs="+", help="numbers of faults")
    numbers = parser.parse_args().only or range(len(FAULTS))
    for tests in dict.fromkeys(FAULTS[number].tests for number in numbers):
        if is_caught(without_fault(tests)):
            print(f"the tests fail without any fault: {', '.join(tests)}")
            return 2
    missed = []
    for number in numbers:
        caught = is_caught(FAULTS[number])
        print(f"{number:3}  {'caught' if caught else 'MISSED'}  {FAULTS[number].file}: {FAULTS[number].text.strip()[:90]}", flush=True)
        missed += [] if caught else [number]
    print(f"{len(numbers) - len(missed)} of {len(numbers)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The command; `generated.faults` says how it is called."""

import argparse
import sys
import time

from generated.faults.catching import catch, catch_all, copied
from generated.faults.patching import FAULTS

SHARE = 0.95  # of the faults are to be caught


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m generated.faults", description="Break the package, one fault at a time.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000, help="programs, at most, for each fault")
    parser.add_argument("--only", nargs="+", default=[""], help="how the names of the faults begin: B1, B7-03")
    arguments = parser.parse_args()
    faults = [fault for fault in FAULTS if fault.name.startswith(tuple(arguments.only))]
    if not faults:
        parser.error(f"no fault is called {' or '.join(arguments.only)}")
    begun = time.monotonic()
    with copied() as root:
        for kind in sorted({"R1" if fault.kind == "R1" else "B1" for fault in faults}):  # which are checked otherwise
            faithful = catch(None, root, arguments.seed, arguments.count, kind=kind)
            if faithful.reason != f"no check of {arguments.count:,} programs fails":
                print(f"without any fault: {faithful.programs}, {faithful.reason}")
                return 2
        programs = []
        for fault, caught in catch_all(faults, root, arguments.seed, arguments.count):
            after = f"after {caught.programs:,}" if caught.programs is not None else "NOT CAUGHT"
            print(f"{fault.kind}  {after:>11}  {fault.name:<52}  {caught.reason:.90}", flush=True)
            programs.append(caught.programs)
    for kind in sorted({fault.kind for fault in faults}):
        mine = [number for fault, number in zip(faults, programs, strict=True) if fault.kind == kind]
        print(f"{kind}: {len(mine) - mine.count(None)} of {len(mine)}")
    caught_count = len(programs) - programs.count(None)
    print(f"{caught_count} of {len(faults)} faults caught within {arguments.count:,} programs, in {time.monotonic() - begun:.0f} s")
    return 0 if caught_count >= SHARE * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())

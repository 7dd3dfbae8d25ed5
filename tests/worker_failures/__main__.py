"""The command; `worker_failures` says how it is called."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from worker_failures.jobs import Failure, draw, end_of, fault_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m worker_failures", description="Kill and stop workers of training jobs.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stops", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shard-optimizer", action="store_true", help="each worker keeps, and saves, a share of the state")
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        root, options = Path(name), {"in_shares": arguments.shard_optimizer}
        fault = end_of(root / "unbroken", Failure(), arguments.workers, **options)
        if fault:
            print(f"the unbroken job: {fault}")
            return 1
        for number, how in enumerate(["kill"] * arguments.kills + ["stop"] * arguments.stops):
            failure = draw(Random(f"{arguments.seed} {number}"), how, arguments.workers, **options)
            folder, started = root / f"job{number}", time.monotonic()
            fault = end_of(folder, failure, arguments.workers, **options) or fault_of(folder, root / "unbroken")
            failures += bool(fault)
            print(f"{number:3} {failure}: {fault or 'goes on to the same bits'}, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{arguments.kills} kills, {arguments.stops} stops, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

"""The command; `soak` says how it is called."""

import argparse
import sys
import time

import oarlock as ol
from soak.measuring import measure
from soak.model import feed, model


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description="Train for a long time and see that nothing grows.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=1_000)
    arguments = parser.parse_args()
    if not 0 <= arguments.warm_up < arguments.steps:
        parser.error("there are more steps than those of the warm-up")
    program = model()
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    began = time.perf_counter()
    growth = measure(
        lambda step: executor.run(program, feed(arguments.seed, step), ["cost"], scope=scope), arguments.steps, arguments.warm_up
    )
    seconds = time.perf_counter() - began
    print(f"{arguments.steps:,} steps in {seconds:.0f} s, {seconds / arguments.steps * 1000:.2f} ms each")
    print(f"memory    {growth.slope:+.3f} MiB per 10,000 steps")
    for kind, count in vars(growth.before).items():
        print(f"{kind:<9} {count} after the warm-up, {getattr(growth.after, kind)} at the end")
    print("\n".join(growth.failures) or "0 failures")
    return 1 if growth.failures else 0


if __name__ == "__main__":
    sys.exit(main())

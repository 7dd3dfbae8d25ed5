"""The command; `kills` says how it is called."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from random import Random

from kills.running import STEPS, kill, same, shown, train

__all__ = ["main", "tried"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kills", description="Kill a run at random instants, and go on with it.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    unbroken, killed, failures, number = train(None), 0, 0, 0
    while killed < arguments.count:
        with tempfile.TemporaryDirectory() as name:
            kills, fault = tried(Path(name) / "run", Random(f"{arguments.seed} {number}"), unbroken, arguments.count - killed)
        killed += kills
        if fault:
            failures += 1
            print(f"run {number}: {fault}", flush=True)
        number += 1
    print(f"{killed} kills in {number} runs, {failures} failures")
    return int(failures > 0)


def tried(folder: Path, random: Random, unbroken: object, most: int) -> tuple[int, str]:
    """Kill a run up to five times, at instants that `random` draws, then let it end: how many kills there were, and what is wrong."""
    kills = sum(kill(folder, random.uniform(0.0, 0.3)) for _ in range(min(5, most)))
    fault = same(train(folder), unbroken)  # type: ignore[arg-type]
    steps = [entry["step"] for line in (folder / "metrics.jsonl").read_text().splitlines() if "loss" in (entry := json.loads(line))]
    if not fault and steps != list(range(1, STEPS + 1)):
        fault = f"the log has the steps {steps}"
    events = shown(folder)
    if not fault and events and (events["train/loss"], events["validation/loss"]) != (steps, steps[2::3]):
        fault = f"TensorBoard shows {events}"
    left = [path.name for path in (folder / "checkpoints").iterdir() if path.name.startswith(".")]
    return kills, fault or (f"{left[0]} was left behind" if left else "")


if __name__ == "__main__":
    sys.exit(main())

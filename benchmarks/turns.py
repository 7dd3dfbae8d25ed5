"""How long a step takes here and in another checkout, by turns, in two processes of which only one works at a time.

    python benchmarks/turns.py ../other/checkout [--workloads W1,W6] [--rounds 3] [--seconds 3]

Each workload is built in both, by the code of each; then they take turns of about 20 ms. Prints, for each workload, the median time of
a step in both, the median ratio of neighbouring turns, this checkout by the other, and the ratio of the fastest tenths, which others
on the machine disturb least; last, the geometric means of both ratios. What memory a process gets makes some steps a fifth faster, so
several pairs of processes are measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent.parent
TURN = 0.02
STEPS_BEFORE = 20
ANSWER = "TURN "


class Runner:
    """A process that has built a workload with the code of a checkout, and runs steps when told to."""

    def __init__(self, checkout: Path, workload: str):
        self.checkout = checkout
        paths = [str(checkout / "src"), str(checkout / "benchmarks")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), str(checkout), "--serve", workload]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def steps(self, count: int) -> float:
        """Milliseconds for each of `count` steps."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # its output ends, then
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                return float(json.loads(line.removeprefix(ANSWER)))
        raise RuntimeError(f"the process of {self.checkout} ended")

    def end(self) -> None:
        with suppress(BrokenPipeError), self.process:  # which closes both ends, and waits
            pass


def serve(workload: str) -> None:
    """In the process of one checkout: run as many steps as each line of the input says, and answer how long one took."""
    import measure  # of the checkout, as is everything that it imports

    import oarlock as ol

    package = measure.PACKAGES[workload]
    weights, feed = package.draw(workload)
    written, held = package.write(workload, weights, feed), measure.as_tensors(feed)
    training = workload in package.TRAINING
    step = ol.Executor().prepare(written.program, [written.fetch], scope=written.scope(), training=training, return_numpy=False)
    for line in sys.stdin:
        count = int(line)
        begin = time.perf_counter()
        for _ in range(count):
            step(held)
        print(f"{ANSWER}{(time.perf_counter() - begin) / count * 1e3}", flush=True)


class Compared(NamedTuple):
    """The median step here and there, in milliseconds; the median ratio of neighbouring turns, and the ratio of the fastest tenths."""

    here: float
    there: float
    ratio: float
    fastest: float


def compare(workload: str, other: Path, seconds: float) -> Compared:
    """Run a workload in both checkouts, by turns. Raises RuntimeError where one of them cannot."""
    runners = [Runner(HERE, workload), Runner(other, workload)]
    try:
        size = max(1, int(TURN * 1e3 / max(runner.steps(STEPS_BEFORE) for runner in runners)))
        times: list[list[float]] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 10:
            order = (0, 1) if len(times) % 2 else (1, 0)
            taken = {index: runners[index].steps(size) for index in order}
            times.append([taken[0], taken[1]])
    finally:
        for runner in runners:
            runner.end()
    here, there = zip(*times, strict=True)
    fast = [statistics.quantiles(each, n=10)[0] for each in (here, there)]
    ratio = statistics.median(mine / its for mine, its in times)
    return Compared(statistics.median(here), statistics.median(there), ratio, fast[0] / fast[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--workloads", help="which, separated by commas; all of `benchmarks/workloads` unless given")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of processes, of which the medians are printed")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each workload, in each round")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    sys.path.insert(0, str(HERE / "src"))
    import workloads

    names = arguments.workloads.split(",") if arguments.workloads else [*workloads.TRAINING, *workloads.INFERENCE]
    found = []
    for name in names:
        rounds = [compare(name, arguments.other.resolve(), arguments.seconds) for _ in range(arguments.rounds)]
        found.append(Compared(*map(statistics.median, zip(*rounds, strict=True))))
        here, there, ratio, fastest = found[-1]
        print(f"{name:>4}  {here:9.4f} ms here  {there:9.4f} ms there  {ratio:.3f}  fastest {fastest:.3f}", flush=True)
    means = [statistics.geometric_mean(each) for each in ([item.ratio for item in found], [item.fastest for item in found])]
    print(f"geometric mean of {len(found)}: {means[0]:.3f}  fastest {means[1]:.3f}")


if __name__ == "__main__":
    main()

"""The worth of each pass: the time of a step without it, over the time of a step with all.

    python benchmarks/passes.py [--workloads W6,W9] [--rounds 5]

Prints a line in Markdown for each workload: the step with all passes in milliseconds, the ratio of a step without any, and for each
pass that applies there how often it does and the ratio of a step without it. Everything is timed in one process, by turns: ratios are the
medians over the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import measure

import oarlock as ol
from oarlock.passes.pipeline import PASSES


def compare(name: str, rounds: int, min_time: float) -> tuple[float, dict[str, int], dict[str, float]]:
    """Milliseconds of a step with all passes, how often each applies, and the ratio of the time without it; without any is `all`."""
    package = measure.PACKAGES[name]
    weights, feed = package.draw(name)
    held = measure.as_tensors(feed)
    workload = package.write(name, weights, feed)
    applied = ol.Executor().plan(workload.program, [workload.fetch]).applied
    chosen = {"": tuple(PASSES), "all": ()}
    chosen |= {left: tuple(each for each in PASSES if each != left) for left, count in applied.items() if count}
    steps = {left: _step(package.write(name, weights, feed), held, passes) for left, passes in chosen.items()}
    for step in steps.values():
        each = _time(step, 3)
    count = max(3, round(min_time * 1e3 / each))  # one for all, since what a step has to do may change as they train
    times: dict[str, list[float]] = {left: [] for left in steps}
    for number in range(rounds):
        order = list(steps)
        first = number % len(order)
        for left in order[first:] + order[:first]:
            times[left].append(_time(steps[left], count))
    ratios = {left: statistics.median(a / b for a, b in zip(taken, times[""], strict=True)) for left, taken in times.items() if left}
    return statistics.median(times[""]), applied, ratios


def _step(workload, held: dict[str, object], passes: tuple[str, ...]) -> Callable[[], object]:
    executor = ol.Executor(passes=passes)
    step = executor.prepare(workload.program, [workload.fetch], scope=workload.scope(), training=workload.training, return_numpy=False)
    return lambda: step(held)


def _time(step: Callable[[], object], count: int) -> float:
    """Milliseconds: the median of `count` steps."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", help="W1,W6 and so on; all where it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--min-time", type=float, default=0.1, help="seconds of steps that each turn times")
    arguments = parser.parse_args()
    ol.configure_process(threads=measure.THREADS)
    print("| | all, ms | none | without one pass (how often it applies) |")
    print("| --- | --- | --- | --- |")
    for name in arguments.workloads.split(",") if arguments.workloads else measure.PACKAGES:
        milliseconds, applied, ratios = compare(name, arguments.rounds, arguments.min_time)
        without = ", ".join(f"{left} ({applied[left]}) {ratio:.2f}" for left, ratio in ratios.items() if left != "all")
        print(f"| {name} | {milliseconds:.3g} | {ratios['all']:.2f} | {without} |", flush=True)


if __name__ == "__main__":
    main()

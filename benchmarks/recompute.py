"""The memory that recomputation saves, and the time that it costs.

    OMP_NUM_THREADS=1 python benchmarks/recompute.py [--models gpt,lstm] [--rounds 5]

Prints a table in Markdown: for each language model, with and without, the most bytes that tensors hold in a training step beyond what
is there before it; by how much the peak memory of a process grows by that step, after one on hardly any text; and the
time of a step, the median of rounds in which both take turns in one process.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import allocation
import character_models
import measure

import oarlock as ol

MODELS = ("gpt", "lstm")
KINDS = ("tensors", "process")


def write(name: str, *, recomputed: bool) -> tuple[ol.Program, ol.Var, dict[str, object]]:
    """The training program of a model, its cost and a feed."""
    source = character_models.text(200_000)
    with ol.Program(seed=1) as program:
        if name == "gpt":
            cost, checkpoints = character_models.gpt()
        else:
            cost, checkpoints = character_models.lstm(), []
        ol.optimizer.Adam(1e-3).minimize(cost)
    (feed,) = character_models.batches(source, 1, 32, 64, seed=0) if name == "gpt" else character_models.batches(source, 1, 64, 100, seed=0)
    if name == "lstm":
        feed = {key: value.T.copy() for key, value in feed.items()}
    if recomputed:
        ol.passes.recompute(program, checkpoints, segments=None if checkpoints else 1)
    return program, cost, measure.as_tensors(feed)


def steps_of(name: str, *, recomputed: bool) -> tuple[Callable[[], object], Callable[[], object]]:
    """A training step of a model, ready to be called, and one of the same plan on hardly any text."""
    program, cost, feed = write(name, recomputed=recomputed)
    little = {key: (value[:1] if name == "gpt" else value[:2, :1]).contiguous() for key, value in feed.items()}
    scope = ol.Scope()
    ol.init(program, scope=scope)
    prepared = ol.Executor().prepare(program, [cost], scope=scope, return_numpy=False)
    return lambda: prepared(feed)[0], lambda: prepared(little)[0]


def measure_memory(name: str, kind: str, *, recomputed: bool) -> dict[str, object]:
    """The MiB that one process needs for a first step, of one `kind`; the losses of three, to compare."""
    step, little_step = steps_of(name, recomputed=recomputed)
    little_step()
    before, losses = allocation.process_peak(), []
    first = lambda: losses.append(step().item())  # noqa: E731  # type: ignore[attr-defined]
    if kind == "tensors":  # watched, kernels may be computed otherwise, so that the process needs more
        needed = allocation.peak_bytes(first) / 2**20
    else:
        first()
        needed = allocation.process_peak() - before
    return {"needed": needed, "losses": losses + [step().item() for _ in range(2)]}  # type: ignore[attr-defined]


def in_a_process(name: str, kind: str, *, recomputed: bool) -> dict:
    command = [sys.executable, __file__, "--model", name, "--kind", kind, *(["--recomputed"] if recomputed else [])]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  this file
    return json.loads(output.splitlines()[-1])


def compare(name: str, rounds: int) -> list[str]:
    """The lines of the table of a model. Raises AssertionError where the two learn otherwise."""
    found = {kind: [in_a_process(name, kind, recomputed=recomputed) for recomputed in (False, True)] for kind in KINDS}
    for one, other in found.values():
        assert max(abs(a - b) for a, b in zip(one["losses"], other["losses"], strict=True)) < 1e-4, found
    steps = [steps_of(name, recomputed=recomputed)[0] for recomputed in (False, True)]
    times: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for which in ((0, 1), (1, 0))[number % 2]:
            begin = time.perf_counter()
            for _ in range(3):
                steps[which]()
            if number:
                times[which].append((time.perf_counter() - begin) / 3 * 1e3)
    ratio = statistics.median(after / before for before, after in zip(*times, strict=True))
    lines = []
    for which, text in enumerate(("all is kept", "recomputed")):
        needed = " | ".join(f"{found[kind][which]['needed']:.1f}" for kind in KINDS)
        lines.append(f"| {name}, {text} | {needed} | {statistics.median(times[which]):.1f} |")
    ratios = " | ".join(f"{found[kind][1]['needed'] / found[kind][0]['needed']:.2f}" for kind in KINDS)
    return [*lines, f"| ratio | {ratios} | {ratio:.2f} |"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    for name in ("--model", "--kind"):  # of a child
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--recomputed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    ol.configure_process(threads=measure.THREADS)
    if arguments.model:
        print(json.dumps(measure_memory(arguments.model, arguments.kind, recomputed=arguments.recomputed)))
        return
    print("| | tensors, MiB | process, MiB | step, ms |")
    print("| --- | --- | --- | --- |")
    for name in arguments.models.split(","):
        print("\n".join(compare(name, arguments.rounds)), flush=True)


if __name__ == "__main__":
    main()

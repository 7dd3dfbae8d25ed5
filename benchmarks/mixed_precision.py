"""Whether a model that learns with products in bfloat16 ends where it ends in float32, and how long a step takes.

    OMP_NUM_THREADS=1 python benchmarks/mixed_precision.py [--steps 400] [--dtypes bfloat16] [--seed 0]

Trains a GPT of two blocks on characters of the standard library's source, from the same weights on the same texts, in float32 and in each
dtype, by turns, ten steps each. Prints a table in Markdown: the loss on 64 texts that are held out, its ratio to that of float32, the
milliseconds of a step, the median, and the ratio of those. float16 is scaled by `LossScaling`.
"""

import argparse
import statistics
import time

import character_models
import measure

import oarlock as ol

TURN = 10


class Run:
    """The training of one dtype."""

    def __init__(self, dtype: str, width: int, seed: int):
        with ol.Program(seed=seed) as self.program:
            self.cost, _ = character_models.gpt(layers=2, width=width)
            if dtype != "float32":
                ol.passes.mixed_precision(self.program, dtype)
            optimizer = ol.optimizer.Adam(1e-3)
            (ol.optimizer.LossScaling(optimizer) if dtype == "float16" else optimizer).minimize(self.cost)
        self.scope = ol.init(self.program, ol.Scope())
        self.executor = ol.Executor()
        self.prepared = self.executor.prepare(self.program, [self.cost], scope=self.scope, return_numpy=False)
        self.times: list[float] = []

    def train(self, feeds: list[dict[str, object]]) -> None:
        """Make a step on each of the texts."""
        for feed in feeds:
            begin = time.perf_counter()
            self.prepared(feed)
            self.times.append((time.perf_counter() - begin) * 1e3)

    def loss(self, feed: dict[str, object]) -> float:
        """The loss on other texts."""
        return float(self.executor.run(self.program, feed, [self.cost], scope=self.scope, training=False)[0])


def compare(dtypes: list[str], steps: int, width: int, seed: int) -> dict[str, tuple[float, float]]:
    """For each dtype the loss on texts that are held out, and the milliseconds of a step."""
    source = character_models.text()
    learned, held_out = source[: len(source) * 9 // 10], source[len(source) * 9 // 10 :]
    runs = {dtype: Run(dtype, width, seed) for dtype in dtypes}
    feeds = [measure.as_tensors(feed) for feed in character_models.batches(learned, steps, 16, 64, seed)]
    (judged,) = (measure.as_tensors(feed) for feed in character_models.batches(held_out, 1, 64, 64, seed))
    for first in range(0, steps, TURN):
        for dtype in dtypes if first // TURN % 2 else dtypes[::-1]:
            runs[dtype].train(feeds[first : first + TURN])
    return {dtype: (run.loss(judged), statistics.median(run.times)) for dtype, run in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--dtypes", default="bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ol.configure_process(threads=measure.THREADS)
    found = compare(["float32", *arguments.dtypes.split(",")], arguments.steps, arguments.width, arguments.seed)
    (loss, taken), *_ = found.values()
    print("| | loss | ratio | step, ms | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for dtype, (other, milliseconds) in found.items():
        print(f"| {dtype} | {other:.4f} | {other / loss:.4f} | {milliseconds:.1f} | {milliseconds / taken:.2f} |")


if __name__ == "__main__":
    main()

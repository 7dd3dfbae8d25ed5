"""How long a step of many workers would take: the model of `docs/scale.md`, in one line for each number of workers.

    python benchmarks/scale.py --compute 150 --megabytes 400 --hop 0.02 --bandwidth 25 --hidden 0.6 [--workers 1,8,64,512,1024,10000]

A step of N workers takes waiting * compute + max(0, exchange - hidden * compute) + small, all in milliseconds:

- compute: a step of one process, with as many beside it as there will be on its machine;
- waiting: the slowest worker's time over the median's, since each exchange waits for the last;
- hop: the latency from one worker to another. A ring of N has 2 (N - 1) in each sum, a tree 2 log2 N (`--tree`);
- exchange: buckets * hops + 2 (N - 1) / N * megabytes / bandwidth, where `megabytes` are those of all gradients, and a bucket has 25 MiB;
- small: two sums of a number or few, whose latency nothing hides;
- hidden: the share of a step during which gradients can be exchanged. 0 where the processors that compute do the exchange, as gloo's do.

Prints the milliseconds, how many steps' worth of rows N workers do in that time of one (the speed-up), and that as a share of N.
"""

import argparse
import math
from dataclasses import dataclass

SMALL_SUMS = 2  # of the rows and of the loss
FIRST_BUCKET, BUCKET = 1.0, 25.0  # MiB


@dataclass(frozen=True)
class Job:
    """A model on a kind of machine: times in milliseconds, sizes in megabytes, bandwidth in megabytes per millisecond (GB/s)."""

    compute: float
    megabytes: float
    hop: float
    bandwidth: float
    waiting: float = 1.1
    hidden: float = 0.0
    tree: bool = False

    def step(self, workers: int) -> float:
        """The milliseconds of a step."""
        if workers == 1:
            return self.compute
        latency = self.hop * 2 * (math.log2(workers) if self.tree else workers - 1)
        buckets = 1 + math.ceil(max(0.0, self.megabytes - FIRST_BUCKET) / BUCKET)
        exchange = buckets * latency + 2 * (workers - 1) / workers * self.megabytes / self.bandwidth
        return self.waiting * self.compute + max(0.0, exchange - self.hidden * self.compute) + SMALL_SUMS * latency


def main() -> None:
    parser = argparse.ArgumentParser(description="A step of many workers, by a model.")
    parser.add_argument("--compute", type=float, required=True, help="milliseconds of a step of one worker")
    parser.add_argument("--megabytes", type=float, required=True, help="of gradients")
    parser.add_argument("--hop", type=float, required=True, help="milliseconds from a worker to the next")
    parser.add_argument("--bandwidth", type=float, required=True, help="GB/s between two workers")
    parser.add_argument("--waiting", type=float, default=1.1, help="the slowest worker's time over the median's")
    parser.add_argument("--hidden", type=float, default=0.0, help="the share of a step that hides exchanges")
    parser.add_argument("--tree", action="store_true", help="sums go through a tree, not a ring")
    parser.add_argument("--workers", default="1,8,64,512,1024,10000")
    arguments = vars(parser.parse_args())
    counts = [int(each) for each in arguments.pop("workers").split(",")]
    job = Job(**arguments)
    print(f"{'workers':>8}{'ms':>10}{'speed-up':>10}{'share':>8}")
    for count in counts:
        speed = count * job.step(1) / job.step(count)
        print(f"{count:8}{job.step(count):10.1f}{speed:10.1f}{speed / count:8.2f}")


if __name__ == "__main__":
    main()

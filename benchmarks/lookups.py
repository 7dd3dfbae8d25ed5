"""How long a training step of a table takes that is looked up, by rows, beside PyTorch's sparse gradients, by turns.

    OMP_NUM_THREADS=1 python benchmarks/lookups.py [--rows 50000,1000000] [--ids 8192] [--width 128] [--turns 20] [--steps 10]

The table is float32; the cost is the sum of the squares of the rows that a step asks for, by other ids in each step. Beside Oarlock's
`sgd` and `lazy adam` stands `torch.nn.Embedding(sparse=True)` with SGD and with SparseAdam; `sgd, not asked` is Oarlock's where the
lookup does not ask for rows. Both sides begin from one table, and must end in the same.
Prints the median and the least time of a step in milliseconds, and the median ratio of neighbouring turns, ours by theirs. With one
thread, the time of the processor is measured, which others on the machine disturb less.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch

import oarlock as ol

RATE, EPSILON = 0.01, 1e-8
Step = Callable[[torch.Tensor], object]


def ours(start: torch.Tensor, optimizer: ol.optimizer.Optimizer, *, sparse: bool) -> tuple[Step, Callable[[], torch.Tensor]]:
    """A step in Oarlock, and what reads the table."""
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        rows = ol.layer.embedding(ids, (start.shape[0], start.shape[1]), params=["words"], sparse=sparse)
        cost = ol.op.reduce_sum(ol.op.square(rows))
        optimizer.minimize(cost)
    scope = ol.init(program, ol.Scope())
    scope["words"] = start.clone()
    step = ol.Executor().prepare(program, [cost], scope=scope)
    return lambda ids: step({"ids": ids}), lambda: scope["words"]


def theirs(start: torch.Tensor, kind: Callable[[list[torch.Tensor]], torch.optim.Optimizer]) -> tuple[Step, Callable[[], torch.Tensor]]:
    """The same step in PyTorch."""
    words = torch.nn.Embedding.from_pretrained(start.clone(), freeze=False, sparse=True)
    optimizer = kind(list(words.parameters()))

    def step(ids: torch.Tensor) -> float:
        optimizer.zero_grad()
        cost = words(ids).square().sum()
        cost.backward()
        optimizer.step()
        return cost.item()

    return step, lambda: words.weight.detach()


KINDS = {
    "sgd": (
        lambda start: ours(start, ol.optimizer.SGD(RATE), sparse=True),
        lambda start: theirs(start, lambda params: torch.optim.SGD(params, lr=RATE)),
    ),
    "sgd, not asked": (
        lambda start: ours(start, ol.optimizer.SGD(RATE), sparse=False),
        lambda start: theirs(start, lambda params: torch.optim.SGD(params, lr=RATE)),
    ),
    "lazy adam": (
        lambda start: ours(start, ol.optimizer.Adam(RATE, epsilon=EPSILON, lazy=True), sparse=True),
        lambda start: theirs(start, lambda params: torch.optim.SparseAdam(params, lr=RATE, eps=EPSILON)),
    ),
}


def compare(kind: str, rows: int, width: int, ids: int, turns: int, steps: int) -> str:
    """A row of the table of results. Raises SystemExit where the two tables differ."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn((rows, width), generator=generator)
    asked = [torch.randint(0, rows, (ids,), generator=generator) for _ in range(steps)]
    sides = [begin(start) for begin in KINDS[kind]]
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for side, (step, _) in enumerate(sides):
            begun = clock()
            for each in asked:
                step(each)
            if turn:  # the first prepares
                times[side].append((clock() - begun) / steps * 1e3)
    tables = [read() for _, read in sides]
    moved, apart = (float((table - tables[0]).abs().mean()) for table in (start, tables[1]))
    if apart > 1e-5 * moved:  # on the whole: Adam moves an element whose slope is all but 0 by the sign of its rounding
        raise SystemExit(f"{kind}, {rows} rows: the tables have moved by {moved}, and are {apart} apart")
    ratio = statistics.median(one / other for one, other in zip(*times, strict=True))
    median, least = ([measure(side) for side in times] for measure in (statistics.median, min))
    return f"| {kind} | {rows:,} | {median[0]:.2f} | {median[1]:.2f} | {least[0]:.2f} | {least[1]:.2f} | {ratio:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="50000,1000000")
    parser.add_argument("--ids", type=int, default=8192)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--kinds", default=";".join(KINDS))
    options = parser.parse_args(arguments)
    print("| step | rows | Oarlock, ms | PyTorch, ms | least | least | ratio |", "|---|---|---|---|---|---|---|", sep="\n")
    for rows in map(int, options.rows.split(",")):
        for kind in options.kinds.split(";"):
            print(compare(kind, rows, options.width, options.ids, options.turns, options.steps), flush=True)


if __name__ == "__main__":
    main()

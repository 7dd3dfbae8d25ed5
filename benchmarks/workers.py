"""How long a training step of several workers takes beside PyTorch's DistributedDataParallel, by turns in the same processes.

    OMP_NUM_THREADS=1 python benchmarks/workers.py [--models mlp,cnn,gpt] [--workers 2] [--rows 64] [--rounds 20] [--seconds 0.5]

Each worker is a process of one thread, connected with the others by gloo on this machine. It builds each model twice from the same weights:
in PyTorch, under DistributedDataParallel, and taken in by `ol.from_torch`, rewritten by `ol.passes.data_parallel`; both have Adam and the
same rows, and so must the losses agree. `rows` are those of each worker. Prints, for each model: the median time of a step of both, and the
median ratio of neighbouring turns; the bytes that crossed the loopback device in a step, of which the least is what a ring sends, 2 (N - 1)
times the gradients; how long it took from the program to the end of the first step, and DistributedDataParallel's; a step of one process
alone, by the same plan and in PyTorch, and of as many processes side by side, which share the machine and exchange nothing; and the bytes
of the optimizer's state on a worker, whole and by `ol.passes.shard_optimizer`, with its time of a step.

Bytes are those of all that this machine sends to itself: run it alone.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed

import oarlock as ol
from oarlock.runtime.workers import Workers, connect, disconnect

RATE = 1e-3
STEPS_BEFORE = 3
Step = Callable[[], float]


class Mlp(torch.nn.Sequential):
    """Two wide layers: 1.4 million parameters, which are more to exchange than to compute."""

    def __init__(self) -> None:
        super().__init__(
            torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)
        )

    @staticmethod
    def drawn(rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(rows, 256, generator=generator), torch.randint(0, 10, (rows,), generator=generator)


class Cnn(torch.nn.Sequential):
    """Four convolutions of small images: few parameters, which are more to compute than to exchange."""

    def __init__(self) -> None:
        layers: list[torch.nn.Module] = []
        for before, after, stride in ((3, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)):
            layers += [torch.nn.Conv2d(before, after, 3, stride, 1), torch.nn.ReLU()]
        super().__init__(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10))

    @staticmethod
    def drawn(rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(rows, 3, 16, 16, generator=generator), torch.randint(0, 10, (rows,), generator=generator)


class Gpt(torch.nn.Module):
    """Four blocks of a transformer over characters: 0.8 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.characters, self.places = torch.nn.Embedding(96, 128), torch.nn.Parameter(torch.zeros(64, 128))
        block = torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = torch.nn.TransformerEncoder(block, 4, enable_nested_tensor=False)
        self.head = torch.nn.Linear(128, 96)
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(64), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.characters(ids) + self.places, mask=self.mask, is_causal=True))

    @staticmethod
    def drawn(rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        ids, following = torch.randint(0, 96, (2, max(1, rows // 8), 64), generator=generator)
        return ids, following


MODELS: dict[str, Any] = {"mlp": Mlp, "cnn": Cnn, "gpt": Gpt}


class Begun:
    """A training step; the seconds from the program to the end of the first one; the bytes of the optimizer's state on this worker."""

    def __init__(self, step: Step, since: float, state: Callable[[], int]):
        self.losses = [step()]
        self.first = time.perf_counter() - since
        self.losses += [step() for _ in range(STEPS_BEFORE - 1)]
        self.step, self.state = step, state()


def begin_oarlock(module: torch.nn.Module, given: torch.Tensor, label: torch.Tensor, workers: Workers, *, in_shares: bool = False) -> Begun:
    model = ol.from_torch(module, given, dynamic="n")
    with model.program as program:
        classes = ol.layer.data("label", list(label.shape[1:]), "int64")
        cost = ol.layer.cross_entropy(model.output, classes)
        ol.optimizer.Adam(RATE).minimize(cost)
        program.targets = {"loss": cost}
    start = time.perf_counter()
    scope = ol.init(program, model.scope)
    if workers.count > 1:
        ol.passes.data_parallel(program)
    kept = ol.passes.shard_optimizer(program, workers=workers.count) if in_shares else {}
    for name, shape in kept.items():
        scope.set(name, torch.zeros(-(-torch.Size(shape).numel() // workers.count)))
    prepared = ol.Executor(workers=workers).prepare(program, ["loss"], scope=scope, return_numpy=False)
    (name,) = model.inputs
    feed = {name: given, "label": label}
    state = lambda: sum(scope[each].nbytes for each in scope if "@MOMENT" in each)  # noqa: E731
    return Begun(lambda: float(prepared(feed)[0]), start, state)


def begin_torch(module: torch.nn.Module, given: torch.Tensor, label: torch.Tensor, workers: Workers) -> Begun:
    start = time.perf_counter()
    parallel = torch.nn.parallel.DistributedDataParallel(module) if workers.count > 1 else module
    optimizer = torch.optim.Adam(module.parameters(), lr=RATE)

    def step() -> float:
        optimizer.zero_grad()
        logits = parallel(given)
        cost = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), label.reshape(-1))
        cost.backward()
        optimizer.step()
        return float(cost.detach())

    return Begun(step, start, lambda: sum(tensor.nbytes for each in optimizer.state.values() for tensor in each.values() if tensor.dim()))


def sent() -> int:
    """The bytes that this machine has sent to itself."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def measure(name: str, rows: int, rounds: int, seconds: float, workers: Workers) -> dict[str, Any]:
    """The steps of both, and of ours in shares where there are several workers, by turns."""
    kind = MODELS[name]
    given, label = kind.drawn(rows, torch.Generator().manual_seed(workers.index + 1))

    def drawn() -> torch.nn.Module:
        torch.manual_seed(0)
        return kind()

    sides = {"oarlock": begin_oarlock(drawn(), given, label, workers), "torch": begin_torch(drawn(), given, label, workers)}
    if workers.count > 1:
        sides["in_shares"] = begin_oarlock(drawn(), given, label, workers, in_shares=True)
    count = {side: _agreed(workers, seconds / _seconds(begun.step, 3)) for side, begun in sides.items()}
    times: dict[str, list[float]] = {side: [] for side in sides}
    bytes_of: dict[str, float] = {}
    for _ in range(rounds):
        for side, begun in sides.items():
            _agreed(workers, 1.0)  # all begin together
            before = sent()
            times[side].append(_seconds(begun.step, count[side]))
            _agreed(workers, 1.0)
            bytes_of[side] = (sent() - before) / count[side]
    losses = {side: _means(workers, begun.losses) if side == "torch" else begun.losses for side, begun in sides.items()}
    gradients = sum(parameter.nbytes for parameter in drawn().parameters())
    return {
        "times": times,
        "losses": losses,
        "bytes": bytes_of,
        "least": 2 * (workers.count - 1) * gradients,
        "first": {side: begun.first for side, begun in sides.items()},
        "state": {side: begun.state for side, begun in sides.items()},
    }


def _seconds(step: Step, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def _agreed(workers: Workers, number: float) -> int:
    """The least of the numbers of all workers, as a count from 1."""
    return max(1, workers.least(int(number)))


def _means(workers: Workers, numbers: list[float]) -> list[float]:
    return (workers.all_reduce([torch.tensor(numbers, dtype=torch.float64)], "sum")[0] / workers.count).tolist()


def work(arguments: argparse.Namespace) -> None:
    """As one of the workers: measure each model, and print what was found, if this is the first."""
    torch.set_num_threads(1)
    ol.configure_process()
    workers = connect()
    for name in arguments.models.split(","):
        found = measure(name, arguments.rows, arguments.rounds, arguments.seconds, workers)
        if workers.index == 0:
            print(json.dumps({"model": name, **found}), flush=True)
    if workers.count > 1:
        distributed.barrier()
    disconnect()


def run(count: int, arguments: argparse.Namespace, *, joined: bool = True) -> list[dict[str, Any]]:
    """The measurements of so many workers; of so many processes side by side where they are not joined."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    words = [sys.executable, __file__, "--work", *sys.argv[1:]]
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if joined and count > 1 else {}
    common = os.environ | group | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(words, env=common | ({"RANK": str(rank)} if group else {}), stdout=subprocess.PIPE, text=True)  # noqa: S603
        for rank in range(count)
    ]
    printed = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"workers ended with {[process.returncode for process in processes]}")
    return [json.loads(line) for line in printed[0].splitlines() if line.startswith('{"model"')]


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps of several workers beside DistributedDataParallel.")
    parser.add_argument("--models", default="mlp,cnn,gpt")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=64, help="of each worker")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments)
    alone, apart = run(1, arguments), run(arguments.workers, arguments, joined=False)
    together = run(arguments.workers, arguments)
    columns = f"{'':6}{'ms':>9}{'DDP ms':>9}{'ratio':>8}{'bytes':>8}{'DDP':>7}{'first s':>9}{'DDP s':>7}{'alone ms':>10}{'eager ms':>10}"
    print(f"{columns}{'apart ms':>10}{'state':>11}{'shares':>10}{'ms':>9}")
    for one, beside, many in zip(alone, apart, together, strict=True):
        times = many["times"]
        for side in ("torch", "in_shares"):
            differs = max(abs(a - b) / abs(b) for a, b in zip(many["losses"]["oarlock"], many["losses"][side], strict=True))
            if differs > 1e-4:
                raise SystemExit(f"{many['model']}: the losses differ from those of {side} by {differs:.1e}")
        ratio = statistics.median(own / other for own, other in zip(times["oarlock"], times["torch"], strict=True))
        ms = {side: statistics.median(each) * 1e3 for side, each in times.items()}
        share = {side: many["bytes"][side] / many["least"] for side in many["bytes"]}
        print(
            f"{many['model']:6}{ms['oarlock']:9.3f}{ms['torch']:9.3f}{ratio:8.3f}{share['oarlock']:8.3f}{share['torch']:7.3f}"
            f"{many['first']['oarlock']:9.2f}{many['first']['torch']:7.2f}{statistics.median(one['times']['oarlock']) * 1e3:10.3f}"
            f"{statistics.median(one['times']['torch']) * 1e3:10.3f}{statistics.median(beside['times']['oarlock']) * 1e3:10.3f}"
            f"{many['state']['oarlock']:11,}{many['state']['in_shares']:10,}{ms['in_shares']:9.3f}"
        )
    return None


if __name__ == "__main__":
    main()

"""How long a training step of imported models takes beside the same module in PyTorch, eager and compiled, by turns.

    OMP_NUM_THREADS=1 python benchmarks/imported_models.py [--models tv/resnet18,hf/gpt2] [--batch 8] [--optimizer sgd] [--rounds 1]
    python benchmarks/imported_models.py --place gpu --backend cuda_graphs --batch 64

Each model of `tools/model_catalogue.py` is built three times, in three processes of which only one works at a time: imported by
`ol.from_torch`, in PyTorch, and under `torch.compile`. Its cost is the cross entropy of its first output; data and first weights are the
same, and so must the first losses be. Prints, for each model, the median time of a step in each, the median ratio of neighbouring turns,
ours by the better of theirs, and the ratio of the fastest tenths; how long `from_torch` exported, and how long the first step took after
that; last, the geometric means. With one thread, the time of the processor is measured, which others on the machine disturb less.
The packages torchvision and transformers stand beside Oarlock, and `torch.compile` needs a C++ compiler.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

HERE = Path(__file__).parent.parent
MODELS = (
    "tv/resnet18",
    "tv/mobilenet_v3_small",
    "tv/efficientnet_b0",
    "tv/swin_t",
    "hf/roberta",
    "hf/gpt2",
    "hf/llama",
    "hf/marian",
)
SIDES = ("oarlock", "eager", "compile")
RATES = {"sgd": 0.01, "adam": 1e-3}
TURN = 0.05
STEPS_BEFORE = 3
ANSWER = "TURN "

Step = Callable[[], torch.Tensor]


class Setting(NamedTuple):
    """How a model is trained: its rows, by which optimizer, at which place, and which backend compiles our plans, if one does."""

    batch: int
    optimizer: str
    place: str = "cpu"
    backend: Literal["inductor", "cuda_graphs"] | None = None

    @property
    def device(self) -> torch.device:
        return torch.device("cuda:0" if self.place == "gpu" else "cpu")


class Begun(NamedTuple):
    """A training step, and the seconds that went by until it could be called: of an export, and of all that follows it."""

    step: Step
    export: float = 0.0
    rest: float = 0.0


def _drawn(name: str, batch: int) -> tuple[torch.nn.Module, dict[str, torch.Tensor], torch.Tensor]:
    """The module as it trains, what it is called with, and a class for each row of what it gives first."""
    from model_catalogue import find_subject, renamed_first  # of `tools`, which the process that serves is told of

    subject = find_subject(name)
    if subject is None:
        raise SystemExit(f"no model is called {name}")
    size = subject.sizes[0]
    module = subject.module(size)
    given = renamed_first(module, subject.inputs(size, batch))
    with torch.no_grad():
        logits = first_of(module(**given))
    generator = torch.Generator().manual_seed(3)
    return module.train(), given, torch.randint(0, logits.shape[-1], logits.shape[:-1], generator=generator)


def first_of(output: Any) -> torch.Tensor:
    """The first tensor of what a module returns."""
    return output if isinstance(output, torch.Tensor) else next(iter(output.values()))


def begin_oarlock(name: str, setting: Setting) -> Begun:
    import oarlock as ol
    from oarlock.interop.torch import imported

    module, given, label = _drawn(name, setting.batch)
    ol.configure_process()
    with timed(imported, "export_module") as exported:
        start = time.perf_counter()
        model = ol.from_torch(module, given)
        with model.program:
            classes = ol.layer.data("label", list(label.shape), "int64", batch=None)
            cost = ol.layer.cross_entropy(next(iter(model.outputs.values())), classes)
            kind = {"sgd": ol.optimizer.SGD, "adam": ol.optimizer.Adam}[setting.optimizer]
            kind(RATES[setting.optimizer]).minimize(cost)
        scope = ol.init(model.program, model.scope)
        executor = ol.Executor(ol.GPUPlace(0) if setting.place == "gpu" else ol.CPUPlace(), backend=setting.backend)
        prepared = executor.prepare(model.program, [cost], scope=scope, return_numpy=False)
        rest = time.perf_counter() - start - sum(exported)
    feed = {key: tensor.to(setting.device) for key, tensor in {**given, "label": label}.items()}
    return Begun(lambda: prepared(feed)[0], sum(exported), rest)  # type: ignore[arg-type, return-value]


@contextmanager
def timed(module: Any, function: str) -> Iterator[list[float]]:
    """The seconds that each call of a function of a module takes."""
    original, seconds = getattr(module, function), []

    def measured(*args: object, **kwargs: object) -> object:
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)

    setattr(module, function, measured)
    try:
        yield seconds
    finally:
        setattr(module, function, original)


def begin_torch(name: str, setting: Setting, *, compiled: bool) -> Begun:
    module, given, label = _drawn(name, setting.batch)
    module.to(setting.device)
    given, label = {key: tensor.to(setting.device) for key, tensor in given.items()}, label.to(setting.device)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[setting.optimizer]
    update = kind(module.parameters(), lr=RATES[setting.optimizer])
    start = time.perf_counter()

    def cost(**given: torch.Tensor) -> torch.Tensor:
        logits = first_of(module(**given))
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), label.reshape(-1))

    computed = torch.compile(cost) if compiled else cost

    def step() -> torch.Tensor:
        update.zero_grad()
        found = computed(**given)
        found.backward()
        update.step()
        return found.detach()

    return Begun(step, 0.0, time.perf_counter() - start)


def begin(side: str, name: str, setting: Setting) -> Begun:
    if side == "oarlock":
        return begin_oarlock(name, setting)
    return begin_torch(name, setting, compiled=side == "compile")


def serve(side: str, name: str, setting: Setting) -> None:
    """In a process of its own: say what came first, then run as many steps as each line of the input says, and how long one took."""
    begun = begin(side, name, setting)
    start = time.perf_counter()
    losses = [begun.step().item()]
    first = begun.rest + time.perf_counter() - start
    losses += [begun.step().item(), begun.step().item()]
    alone = torch.get_num_threads() == 1 and setting.place == "cpu"
    clock = time.process_time if alone else time.perf_counter
    print(ANSWER + json.dumps({"losses": losses, "export": begun.export, "first": first}), flush=True)
    for line in sys.stdin:
        count = int(line)
        start = clock()
        for _ in range(count):
            begun.step()
        if setting.place == "gpu":
            torch.cuda.synchronize()
        print(f"{ANSWER}{(clock() - start) / count * 1e3}", flush=True)


class Runner:
    """A process that has built a model on one of the sides, and runs steps when told to."""

    def __init__(self, side: str, name: str, setting: Setting):
        self.side = side
        paths = [str(HERE / "src"), str(HERE / "tools")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        given = ["--serve", side, "--models", name, "--batch", str(setting.batch), "--optimizer", setting.optimizer]
        given += ["--place", setting.place, *(["--backend", setting.backend] if setting.backend else [])]
        command = [sys.executable, str(Path(__file__).resolve()), *given]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        self.begun = self._answer()

    def steps(self, count: int) -> float:
        """Milliseconds for each of `count` steps."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # its output ends, then
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER))
        raise RuntimeError(f"the process of {self.side} ended")

    def end(self) -> None:
        with suppress(BrokenPipeError), self.process:  # which closes both ends, and waits
            pass


class Compared(NamedTuple):
    """Of one model: the median step on each side in milliseconds, the ratios to the better peer, and what came before the steps."""

    medians: tuple[float, ...]
    ratio: float
    fastest: float
    export: float
    first: float


def compare(name: str, setting: Setting, seconds: float, sides: tuple[str, ...] = SIDES) -> Compared:
    """Train a model on all sides, by turns. Raises RuntimeError where one of them cannot, or first losses differ."""
    runners: list[Runner] = []
    try:
        for side in sides:
            runners.append(Runner(side, name, setting))
        begun = [runner.begun for runner in runners]
        for one in begun[1:]:
            pairs = zip(begun[0]["losses"], one["losses"], (1e-4, 0.05, 0.05), strict=True)  # rounding grows where statistics are a batch's
            if not all(math.isclose(a, b, rel_tol=allowed, abs_tol=1e-3) for a, b, allowed in pairs):
                raise RuntimeError(f"{name}: the first losses are {begun[0]['losses']} here and {one['losses']} there")
        size = max(1, int(TURN * 1e3 / max(runner.steps(STEPS_BEFORE) for runner in runners)))
        times: list[list[float]] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 10:
            order = range(len(sides)) if len(times) % 2 else reversed(range(len(sides)))
            taken = {index: runners[index].steps(size) for index in order}
            times.append([taken[index] for index in range(len(sides))])
    finally:
        for runner in runners:
            runner.end()
    each = list(zip(*times, strict=True))
    fast = [statistics.quantiles(one, n=10)[0] for one in each]
    ratio = max(statistics.median(turn[0] / turn[index] for turn in times) for index in range(1, len(sides)))
    return Compared(tuple(map(statistics.median, each)), ratio, fast[0] / min(fast[1:]), begun[0]["export"], begun[0]["first"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="which, separated by commas")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--optimizer", choices=list(RATES), default="sgd")
    parser.add_argument("--place", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--backend", choices=["inductor", "cuda_graphs"], help="what compiles or captures Oarlock's plans")
    parser.add_argument("--rounds", type=int, default=1, help="sets of processes, of which the medians are printed")
    parser.add_argument("--seconds", type=float, default=6.0, help="of turns for each model, in each round")
    parser.add_argument("--without-compile", action="store_true", help="PyTorch is eager alone")
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    setting = Setting(arguments.batch, arguments.optimizer, arguments.place, arguments.backend)
    if arguments.serve:
        serve(arguments.serve, arguments.models, setting)
        return
    sides = SIDES[:2] if arguments.without_compile else SIDES
    print(f"{'model':24}" + "".join(f"{side + ' ms':>12}" for side in sides) + f"{'ratio':>8}{'fastest':>9}{'export s':>10}{'first s':>9}")
    found = []
    for name in arguments.models.split(","):
        rounds = [compare(name, setting, arguments.seconds, sides) for _ in range(arguments.rounds)]
        medians = tuple(map(statistics.median, zip(*(one.medians for one in rounds), strict=True)))
        found.append(Compared(medians, *(statistics.median(values) for values in zip(*(one[1:] for one in rounds), strict=True))))
        _, ratio, fastest, export, first = found[-1]
        times = "".join(f"{median:12.3f}" for median in medians)
        print(f"{name:24}{times}{ratio:8.3f}{fastest:9.3f}{export:10.2f}{first:9.2f}", flush=True)
    means = [statistics.geometric_mean(each) for each in ([one.ratio for one in found], [one.fastest for one in found])]
    print(f"geometric mean of {len(found)}: {means[0]:.3f}  fastest {means[1]:.3f}")


if __name__ == "__main__":
    main()

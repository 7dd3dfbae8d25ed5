"""How much longer does a step take in `ol.train` than by the bare prepared program, with and without checkpoints? Do files keep it waiting?

    OMP_NUM_THREADS=1 python benchmarks/training_overhead.py [--models digits,char_gpt] [--seconds 10] [--rounds 3] [--repeat 1]
    OMP_NUM_THREADS=2 python benchmarks/training_overhead.py --parquet

The bare program is `executor.prepare(program, targets, scope=scope)`, called on batches that lie ready. It takes its turns inside the
trainer's `on_step`, so both have one process, one place in time and the same caches. A turn is as many steps as lie between two
checkpoints: a save follows the first step of each of the trainer's, and what is left to write when its turn ends is waited for outside of
both. An epoch of the digits has 45 steps, and its end is saved too, so a turn has two checkpoints; with `--repeat 20`, one. Prints for
each model the median time of a step of both, and ratios: the median one of neighbouring turns, that of the sums, the median one of
processor time of the thread that trains, and that of the first deciles of turns, which others on the machine disturb least. With
`--parquet`, runs on a Parquet file and on the same data in memory take turns; printed are a step, how many processors the process kept
busy, and the ratio of steps.
"""

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent.parent
sys.path[:0] = [str(HERE / "src"), str(HERE / "examples")]

import char_gpt  # noqa: E402  # type: ignore[import-not-found]
import numpy  # noqa: E402
import torch  # noqa: E402

import oarlock as ol  # noqa: E402

TURN = 50  # steps, of which a checkpoint is written after each
STEPS_BEFORE = 100


class Model(NamedTuple):
    """A cost and what is shown beside it, the optimizer, and the data: those of an example, at its batch."""

    cost: ol.Var
    show: dict[str, ol.Var]
    optimizer: Callable[[], ol.optimizer.Optimizer]
    data: dict[str, numpy.ndarray]
    batch_size: int = 32


def digits() -> Model:
    """The model of `examples/digits.py`."""
    with ol.Program(seed=0):
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.pool2d(ol.layer.conv2d(image, filters=32, size=3, padding=1, act="relu"), size=2)
        logits = ol.layer.fc(ol.layer.flatten(hidden), 10)
        accuracy = ol.layer.accuracy(ol.layer.softmax(logits), label)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
    return Model(cost, {"accuracy": accuracy}, lambda: ol.optimizer.Adam(1e-3), ol.datasets.digits.split(seed=0)[0])


def gpt() -> Model:
    """The model of `examples/char_gpt.py`."""
    with ol.Program(seed=0):
        following = ol.layer.data("next", [char_gpt.CONTEXT], dtype="int64")
        logits = char_gpt.gpt(ol.layer.data("ids", [char_gpt.CONTEXT], dtype="int64"))
        cost = ol.layer.mean(ol.layer.cross_entropy(logits, following))
    text = ol.datasets.standard_library.split(length=char_gpt.CONTEXT, files=40)[0]
    clip = ol.optimizer.ClipByGlobalNorm(1.0)
    return Model(
        cost,
        {},
        lambda: ol.optimizer.AdamW(5e-3, weight_decay=0.05, clip=clip),
        text,
    )


MODELS: dict[str, Callable[[], Model]] = {"digits": digits, "char_gpt": gpt}


Moment = tuple[float, float]


def _now() -> Moment:
    return time.perf_counter(), time.thread_time()


def _since(begin: Moment) -> Moment:
    end = _now()
    return end[0] - begin[0], end[1] - begin[1]


class _EnoughError(Exception):
    """The time is over."""


class Bare:
    """The prepared program of a model, on batches that lie ready, in a scope of its own."""

    def __init__(self, model: Model):
        program = ol.prune(model.cost.block.program, {"loss": model.cost, **model.show})
        with program:
            model.optimizer().minimize(program.targets["loss"])
        scope = ol.Scope()
        ol.init(program, scope)
        order = torch.from_numpy(numpy.random.default_rng(0).permutation(len(next(iter(model.data.values())))))
        columns = {name: torch.from_numpy(array) for name, array in model.data.items()}
        self.feeds = [{name: column[chosen] for name, column in columns.items()} for chosen in order.split(model.batch_size)]
        self.step = ol.Executor().prepare(program, list(program.targets), scope=scope)
        self.next = 0

    def turn(self, steps: int) -> tuple[float, float]:
        """Seconds for so many steps, and seconds of the processor."""
        begin = _now()
        for _ in range(steps):
            self.step(self.feeds[self.next])
            self.next = (self.next + 1) % len(self.feeds)
        return _since(begin)


class Compared(NamedTuple):
    """Milliseconds of a step, trained and bare, the medians of turns; ratios: of neighbouring turns, sums, processor time, deciles."""

    trained: float
    bare: float
    ratio: float
    sums: float
    processor: float
    decile: float


def compare(model: Model, seconds: float, folder: str | None) -> Compared:
    """Steps of the trainer, which keeps checkpoints in `folder` where there is one, beside those of the bare program, by turns."""
    bare = Bare(model)
    bare.turn(STEPS_BEFORE)
    times: list[tuple[Moment, Moment]] = []
    begun, until = _now(), 0.0

    def on_step(step: int, _: dict[str, float]) -> None:
        nonlocal begun, until
        if step % TURN:
            return
        taken = _since(begun)
        if folder is not None and step > TURN:
            _wait_for(Path(folder) / "checkpoints" / f"step-{step - TURN:09d}")
        if step > STEPS_BEFORE:
            times.append((taken, bare.turn(TURN)))
            if time.perf_counter() > until:
                raise _EnoughError
        else:
            until = time.perf_counter() + seconds
        begun = _now()

    with contextlib.suppress(_EnoughError):
        ol.train(
            model.cost,
            model.data,
            optimizer=model.optimizer(),
            epochs=2**20,
            batch_size=model.batch_size,
            show=model.show,
            run=None if folder is None else ol.training.Run(folder, save_every=TURN),
            on_step=on_step,
            progress=False,
            tune=False,
        )
    trained, alone = ([wall for wall, _ in each] for each in zip(*times, strict=True))
    ratios = [statistics.median(one[clock] / other[clock] for one, other in times) for clock in (0, 1)]
    steps = [statistics.median(each) * 1e3 / TURN for each in (trained, alone)]
    decile = float(numpy.quantile(trained, 0.1) / numpy.quantile(alone, 0.1))
    return Compared(steps[0], steps[1], ratios[0], sum(trained) / sum(alone), ratios[1], decile)


def _wait_for(checkpoint: Path) -> None:
    """Wait until a checkpoint is there: what is left to write is no part of anybody's turn."""
    until = time.perf_counter() + 60
    while not checkpoint.exists():
        if time.perf_counter() > until:
            raise RuntimeError(f"{checkpoint.name} was not written in a minute")
        time.sleep(1e-3)


class Fed(NamedTuple):
    """Seconds of a step, and the processors that were busy meanwhile, of a run."""

    seconds: float
    busy: float


def feed(model: Model, data: object, steps: int) -> Fed:
    """A run on `data`, from its tenth step on."""
    marks: list[tuple[float, float]] = []

    def on_step(step: int, _: dict[str, float]) -> None:
        if step in (10, steps):
            marks.append((time.perf_counter(), time.process_time()))

    ol.train(
        model.cost,
        data,
        optimizer=model.optimizer(),
        epochs=2**20,
        batch_size=model.batch_size,
        steps=steps,
        on_step=on_step,
        progress=False,
        tune=False,
    )
    (begin, busy_before), (end, busy_after) = marks
    return Fed((end - begin) / (steps - 10), (busy_after - busy_before) / (end - begin))


def by_parquet(seconds: float) -> None:
    """Print how steps fed from a Parquet file compare with those fed from memory."""
    import pyarrow
    from pyarrow import parquet

    model = gpt()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.parquet"
        columns = {name: pyarrow.FixedSizeListArray.from_arrays(array.reshape(-1), array.shape[1]) for name, array in model.data.items()}
        parquet.write_table(pyarrow.table(columns), path)
        ways = {"file": str(path), "file, batch by batch": ol.data.read(str(path), transform=dict), "memory": model.data}
        times: dict[str, list[Fed]] = {name: [] for name in ways}
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or len(times["memory"]) < 3:
            for name, data in ways.items():
                times[name].append(feed(model, data, 30))
        for name, runs in times.items():
            ratio = statistics.median(other.seconds / one.seconds for one, other in zip(runs, times["memory"], strict=True))
            took, busy = (statistics.median(values) for values in zip(*runs, strict=True))
            print(
                f"{name:<20}  {took * 1e3:8.2f} ms a step  {busy:5.2f} of {torch.get_num_threads()} processors busy  "
                f"kept as busy as by memory: {ratio * 100:5.1f} %"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="which, separated by commas")
    parser.add_argument("--rounds", type=int, default=3, help="runs, of which the medians are printed")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each model, in each round")
    parser.add_argument("--repeat", type=int, default=1, help="how often an epoch has each row")
    parser.add_argument("--parquet", action="store_true", help="compare data from a Parquet file with data in memory instead")
    arguments = parser.parse_args()
    ol.configure_process()
    if arguments.parquet:
        by_parquet(arguments.seconds)
        return
    for name in arguments.models.split(","):
        for kind in ("trained", "with checkpoints"):
            rounds = []
            for _ in range(arguments.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    model = MODELS[name]()
                    data = {name: numpy.concatenate([column] * arguments.repeat) for name, column in model.data.items()}
                    rounds.append(
                        compare(model._replace(data=data), arguments.seconds, os.path.join(folder, "run") if kind != "trained" else None)
                    )
            trained, bare, ratio, sums, processor, decile = map(statistics.median, zip(*rounds, strict=True))
            times = f"{trained:8.4f} ms  {bare:8.4f} ms bare"
            print(
                f"{name:>10}  {kind:<16}  {times}  {ratio:.3f}  sums {sums:.3f}  processor {processor:.3f}  decile {decile:.3f}", flush=True
            )


if __name__ == "__main__":
    main()

"""The run that is killed: dropout, shuffled ragged rows, momentum, a schedule, batch norm, a metric, a loop of unknown length,
and validation in the middle of epochs, of which the best state is restored."""

import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import numpy
import torch

import oarlock as ol

__all__ = ["kill", "same", "shown", "train"]

_RANDOM = numpy.random.default_rng(7)
WORDS = [_RANDOM.integers(0, 12, length).tolist() for length in _RANDOM.integers(0, 6, 45)]
DATA = {
    "words": WORDS,
    "x": _RANDOM.normal(size=(45, 3)).astype("float32"),
    "label": numpy.array([int(7 in row) for row in WORDS]),
}
STEPS = 30
HAS_TENSORBOARD = find_spec("tensorboard") is not None
if HAS_TENSORBOARD:
    ol.training.loggers.TensorBoard(".")  # imports it here, so that a child is killed while it trains, rather than while it imports


def train(folder: Path | None, *, pause: float = 0.0) -> ol.TrainingResult:
    """Train six epochs of five steps, validate after each third step, and save every second one."""
    with ol.Program(seed=3):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        x = ol.layer.data("x", [3])
        label = ol.layer.data("label", [], dtype="int64")
        start = ol.layer.fc(x, 4, name="start")
        rnn = ol.rnn()
        with rnn.step():
            word = ol.layer.embedding(rnn.step_input(words), (12, 4), name="table")
            state = rnn.memory(init=start)
            following = ol.layer.fc(ol.layer.concat([word, rnn.previous_memory(state)], axis=1), 4, act="tanh", name="cell")
            rnn.update_memory(state, following)
        rnn()
        read = rnn.final_memory(state)
        dense = ol.layer.dropout(ol.layer.batch_norm(ol.layer.fc(x, 4)), 0.3)
        logits = ol.layer.fc(ol.layer.concat([read, dense], axis=1), 2)
        total = ol.op.reduce_sum(ol.op.square(logits)) + 1.0
        loop = ol.while_loop(total > 1.0, max_trips=50)
        with loop.block():
            less = total * 0.8
            loop.carry(total, less)
            loop.update_condition(less > 1.0)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label)) + 0.01 * loop()
        accuracy = ol.metric.accuracy(logits, label)
    rate = ol.optimizer.schedule.ExponentialDecay(0.05, 0.97)
    return ol.train(
        cost,
        DATA,
        optimizer=ol.optimizer.Momentum(rate),
        show={"accuracy": accuracy},
        validate=DATA,
        validate_every=3,
        early_stopping=ol.training.EarlyStopping(patience=8, restore_best=True),
        epochs=6,
        batch_size=9,
        run=None if folder is None else ol.training.Run(folder, save_every=2),
        on_step=lambda *_: time.sleep(pause),
        loggers=[] if folder is None or not HAS_TENSORBOARD else [f"tensorboard:{folder / 'events'}"],
        progress=False,
    )


def kill(folder: Path, delay: float) -> bool:
    """Train in a child, and kill it so many seconds after it has opened its log; whether it still ran."""
    log = folder / "metrics.jsonl"
    before = log.stat().st_mtime_ns if log.exists() else 0
    child = os.fork()
    if not child:
        try:
            train(folder, pause=0.004)
        finally:
            os._exit(0)
    end = time.monotonic() + 120
    while not (log.exists() and log.stat().st_mtime_ns != before) and time.monotonic() < end and os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.001)
    time.sleep(delay)
    try:
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1] == signal.SIGKILL
    except (ProcessLookupError, ChildProcessError):
        return False


def same(left: ol.TrainingResult, right: ol.TrainingResult) -> str:
    """The first difference of two results; nothing for none."""
    for name in right.parameters:
        if not torch.equal(left.parameters[name], right.parameters[name]):
            return f"{name} has other bits"
    measured = [(result.steps, result.history, result.validations) for result in (left, right)]
    return "" if measured[0] == measured[1] else "the history is another"


def shown(folder: Path) -> dict[str, list[int]]:
    """The steps that TensorBoard shows of a run, by label; nothing where it is not installed."""
    if not (folder / "events").exists():
        return {}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "events"), size_guidance={"scalars": 0})
    events.Reload()
    return {label: [event.step for event in events.Scalars(label)] for label in events.Tags()["scalars"]}

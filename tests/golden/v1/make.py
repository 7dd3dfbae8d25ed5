"""The program that made the files beside this one, once: `PYTHONPATH=src:tests python tests/golden/v1/make.py`.

They are never made again. A reader of today must read what the first version of the format wrote; a later version of
the format gets a folder of its own.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy

import oarlock as ol
from oarlock.ir.program import Training

HERE = Path(__file__).parent


def digits() -> tuple[ol.Program, dict[str, numpy.ndarray], int]:
    """A reader of 8 by 8 digits: what predicts, and nothing else."""
    with ol.Program(seed=1) as program:
        image = ol.layer.data("image", shape=[1, 8, 8])
        hidden = ol.layer.pool2d(ol.layer.conv2d(image, filters=4, size=3, padding=1, act="relu"), size=2)
        predict = ol.layer.softmax(ol.layer.fc(ol.layer.flatten(hidden), 10), name="predict")
    program = ol.prune(program, {"predict": predict})
    return program, {"image": numpy.linspace(-1, 1, 3 * 64, dtype="float32").reshape(3, 1, 8, 8)}, 1


def training() -> tuple[ol.Program, dict[str, numpy.ndarray], int]:
    """A classifier with dropout, its gradient and Adam: three steps."""
    with ol.Program(seed=2) as program:
        x = ol.layer.data("x", shape=[6])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.dropout(ol.layer.fc(x, 8, act="tanh"), rate=0.25)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(hidden, 3), label))
        program.targets["cost"] = cost
        ol.optimizer.Adam(0.05).minimize(cost)
    program.training = Training(batch_size=4, epochs=3)
    return program, {"x": numpy.linspace(-2, 2, 24, dtype="float32").reshape(4, 6), "label": numpy.array([0, 1, 2, 1])}, 3


def recurrent() -> tuple[ol.Program, dict[str, numpy.ndarray], int]:
    """A loop with a memory over a sequence of any length, its gradient and SGD: two steps."""
    with ol.Program(seed=3) as program:
        words = ol.layer.data("words", shape=["n", 3], batch="t")
        start = ol.layer.data("start", shape=[4])
        loop = ol.rnn()
        with loop.step():
            word = loop.step_input(words)
            memory = loop.memory(init=start)
            state = ol.layer.fc(ol.op.concat([word, loop.previous_memory(memory)], axis=1), 4, act="tanh", name="cell")
            loop.update_memory(memory, state)
            loop.output(state)
        states = loop()
        cost = ol.layer.mean(ol.op.square(states))
        program.targets |= {"cost": cost, "states": states}
        ol.optimizer.SGD(0.5).minimize(cost)
    feed = {"words": numpy.linspace(-1, 1, 30, dtype="float32").reshape(5, 2, 3), "start": numpy.full((2, 4), 0.25, "float32")}
    return program, feed, 2


def main(builds: Sequence[Callable[[], tuple[ol.Program, dict[str, numpy.ndarray], int]]] = (digits, training, recurrent)) -> None:
    for build in builds:
        program, feed, steps = build()
        scope = ol.init(program, ol.Scope())
        path = HERE / f"{build.__name__}.safetensors"
        ol.save_model(program, scope, path)
        held = {f"feed.{name}": value for name, value in feed.items()}
        for step in range(steps):
            values = ol.Executor().run(program, feed, list(program.targets), scope=scope, training=True)
            held |= {f"step{step}.{label}": value for label, value in zip(program.targets, values, strict=True)}
        held |= {f"after.{name}": scope[name].numpy() for name in scope}
        numpy.savez(HERE / f"{build.__name__}.npz", **held)
        (HERE / f"{build.__name__}.txt").write_text(program.to_text(), encoding="utf-8", newline="\n")
        print(path.name, len(path.read_bytes()), hashlib.sha256(path.read_bytes()).hexdigest()[:16], ol.content_hash(program)[:16])


if __name__ == "__main__":
    main()

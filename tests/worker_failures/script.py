"""The script of a job, one of whose workers fails once: `script.py FOLDER FAILURE [shares]`, as in `kill 1 step 7`, `stop 0 save 3`.

At a step it sends itself the signal between two steps; in a save it does so when the file of that number is half written.
"""

import io
import os
import signal
import sys
from pathlib import Path

import oarlock as ol
from oarlock.training import checkpoint_process, checkpoint_writing

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def train(folder: Path, how: str, worker: str, where: str, number: int, *, in_shares: bool) -> None:
    with ol.Program(seed=0):
        image, label = ol.layer.data("image", [1, 8, 8]), ol.layer.data("label", [], dtype="int64")
        hidden = ol.op.dropout(ol.layer.batch_norm(ol.layer.fc(ol.layer.flatten(image), 16, bias=False), act="relu"), 0.2)
        cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 10), label)
    train, test = ol.datasets.digits.split(seed=0)
    mark = folder.with_suffix(".failed")

    def fail() -> None:
        if os.environ["RANK"] == worker and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), SIGNALS[how])

    def on_step(step: int, _: dict[str, float]) -> None:
        if where == "step" and step == number:
            fail()

    if where == "save":
        _fail_in_file(number, fail)
    optimizer, run = ol.optimizer.Adam(1e-2), ol.training.Run(folder, save_every=3)
    ol.train(cost, train, optimizer=optimizer, epochs=2, batch_size=150, validate=test, run=run, on_step=on_step, shard_optimizer=in_shares)


def _fail_in_file(number: int, fail) -> None:
    """Let the file of a checkpoint of this number be written by half, then fail."""
    whole, written = checkpoint_writing._write, 0
    checkpoint_process.CAN_START = False  # the first worker writes by itself, and fails there

    def write(file: io.BufferedWriter, data: bytes) -> None:
        nonlocal written
        written += 1
        if written == number:
            file.write(bytes(data)[: len(data) // 2])
            file.flush()
            fail()
            file.seek(0)  # where this worker has failed before
        whole(file, data)

    checkpoint_writing._write = write


if __name__ == "__main__":
    folder, how, worker, where, number = sys.argv[1:6]
    train(Path(folder), how, worker, where, int(number), in_shares="shares" in sys.argv[6:])

"""A run of one or several workers in a folder: `test_together.py` starts it. The second of them may end itself, or be interrupted, once."""

import os
import signal
import sys
from pathlib import Path

import oarlock as ol


def main(folder: Path, fatal_step: int, *, fatal_signal: signal.Signals, shard_optimizer: bool) -> None:
    with ol.Program(seed=0):
        image, label = ol.layer.data("image", [1, 8, 8]), ol.layer.data("label", [], dtype="int64")
        hidden = ol.op.dropout(ol.layer.batch_norm(ol.layer.fc(ol.layer.flatten(image), 16, bias=False), act="relu"), 0.2)
        logits = ol.layer.fc(hidden, 10)
        cost, accuracy = ol.layer.cross_entropy(logits, label), ol.metric.accuracy(logits, label)
    train, test = ol.datasets.digits.split(seed=0)
    mark = folder.with_suffix(".killed")

    def on_step(step: int, _: dict[str, float]) -> None:
        if step == fatal_step and os.environ.get("RANK") == "1" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), fatal_signal)

    ol.train(
        cost,
        train,
        optimizer=ol.optimizer.Momentum(0.1, 0.9),
        epochs=2,
        batch_size=100,
        validate=test,
        show={"accuracy": accuracy},
        run=ol.training.Run(folder, save_every=4),
        on_step=on_step,
        shard_optimizer=shard_optimizer,
        progress=False,
    )


if __name__ == "__main__":
    try:
        fatal_signal = signal.SIGINT if "interrupt" in sys.argv else signal.SIGKILL
        main(Path(sys.argv[1]), int(sys.argv[2]), fatal_signal=fatal_signal, shard_optimizer="shard_optimizer" in sys.argv)
    except ol.training.Interrupted as interrupt:
        result = interrupt.result
        ol.save_model(result, f"{sys.argv[1]}.{os.environ['RANK']}.{result.steps}.safetensors")
        sys.exit(130)

"""The accuracy, the speed and the size of a model whose weights are integers of 8 bits.

    OMP_NUM_THREADS=1 python benchmarks/int8.py [--width 1024] [--rows 1,64,512] [--epochs 6] [--rounds 15]

Trains a perceptron of two hidden layers on digits, then quantises it both ways. Prints a table in Markdown: the share of digits that are
told right among those held out, the KiB of the model's file, and for each number of rows the milliseconds of a call, the median of
rounds in which all take turns in one process, and their ratio to those of float32.
"""

import argparse
import io
import statistics
import time

import measure
import numpy

import oarlock as ol

MODES = ("float32", "dynamic", "weights")


def train(width: int, epochs: int, seed: int = 0) -> tuple[ol.Model, dict[str, numpy.ndarray]]:
    """A trained perceptron that gives logits, and the digits that are held out."""
    learned, held_out = ol.datasets.digits.split(seed)
    with ol.Program(seed=seed) as program:
        image = ol.layer.data("image", [64])
        label = ol.layer.data("label", [], dtype="int64")
        hidden = ol.op.relu(ol.layer.fc(ol.op.relu(ol.layer.fc(image, width)), width))
        logits = ol.layer.fc(hidden, 10)
        cost = ol.layer.cross_entropy(logits, label)
        ol.optimizer.Adam(1e-3).minimize(cost)
    result = ol.train(cost, flat(learned), epochs=epochs, batch_size=64, progress=False)
    return ol.Model(ol.prune(program, {"logits": logits}), result.parameters), flat(held_out)


def flat(digits: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """Digits as rows of 64 pixels."""
    return {"image": digits["image"].reshape(len(digits["label"]), 64).astype("float32"), "label": digits["label"]}


def accuracy(model: ol.Model, digits: dict[str, numpy.ndarray]) -> float:
    return float((ol.infer(model, {"image": digits["image"]}).argmax(-1) == digits["label"]).mean())  # type: ignore[union-attr]


def kibibytes(model: ol.Model) -> float:
    """The size of the model's file."""
    file = io.BytesIO()
    ol.save_model(model, file)
    return len(file.getvalue()) / 2**10


def times(models: list[ol.Model], rows: int, rounds: int) -> list[tuple[float, float]]:
    """For each model the milliseconds of a call on `rows` digits, and the ratio to those of the first."""
    image = numpy.random.default_rng(0).random((rows, 64), dtype=numpy.float32)
    feed = measure.as_tensors({"image": image})
    calls = [
        model.executor.prepare(model.program, list(model.program.targets), scope=model.scope, training=False, return_numpy=False)
        for model in models
    ]
    taken: list[list[float]] = [[] for _ in models]
    for number in range(-2, rounds):
        order = list(range(len(models)))
        for which in order if number % 2 else order[::-1]:
            begin = time.perf_counter()
            for _ in range(20):
                calls[which](feed)
            if number >= 0:
                taken[which].append((time.perf_counter() - begin) / 20 * 1e3)
    return [(statistics.median(each), statistics.median(a / b for a, b in zip(each, taken[0], strict=True))) for each in taken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rows", default="1,64,512")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    ol.configure_process(threads=measure.THREADS)
    model, digits = train(arguments.width, arguments.epochs)
    models = [model, ol.quantize(model, "dynamic"), ol.quantize(model, "weights")]
    rows = [int(each) for each in arguments.rows.split(",")]
    found = [times(models, each, arguments.rounds) for each in rows]
    print("| | accuracy | file, KiB | " + " | ".join(f"{each} rows, ms" for each in rows) + " |")
    print("| --- | --- | --- | " + " | ".join("---" for _ in rows) + " |")
    for number, mode in enumerate(MODES):
        told = " | ".join(f"{milliseconds:.3f} ({ratio:.2f})" for milliseconds, ratio in (each[number] for each in found))
        print(f"| {mode} | {accuracy(models[number], digits):.4f} | {kibibytes(models[number]):.0f} | {told} |")


if __name__ == "__main__":
    main()

"""Train with ONNX Runtime. The whole training step (forward, backward, update) is one ONNX file. Oarlock runs the same steps to compare.

python examples/trained_by_onnxruntime.py

`oarlock export run.safetensors --onnx step.onnx --training` writes the same file for a training run saved by `ol.save_model`.
It needs pip install "oarlock[onnx]"; a process that only trains needs the file and the package onnxruntime, but not Oarlock.
"""

import argparse

import numpy

import oarlock as ol


def write_step(seed: int) -> tuple[ol.Program, ol.Var]:
    """Return the program of a training step on digits, and the predicted logits, float32[n 10]."""
    with ol.Program(seed=seed) as program:
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.batch_norm(ol.layer.conv2d(image, filters=16, size=3, padding=1, bias=False), act="relu")
        logits = ol.layer.fc(ol.layer.flatten(ol.layer.pool2d(hidden, size=2)), 10)
        cost = ol.layer.cross_entropy(logits, label)
        ol.optimizer.Adam(3e-3).minimize(cost)
    program.targets = {"loss": cost}
    return program, logits


def share_right(logits: ol.Var, data: dict[str, numpy.ndarray], values: object) -> float:
    """Return the accuracy with these parameters."""
    return float((ol.infer(logits, {"image": data["image"]}, values).argmax(1) == data["label"]).mean())


def main(seed: int = 0, steps: int = 50, path: str = "training_step.onnx") -> float:
    """Run the same steps in both; return the largest difference of losses, relative to the loss or 1, whichever is larger."""
    program, logits = write_step(seed)
    parameters = ol.init(program, ol.Scope())
    exported = ol.to_onnx(program, path, parameters, training=True)

    import onnxruntime  # ol.to_onnx has checked that it is installed

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    fed = [name for name in exported.inputs if name not in exported.state]
    print(f"{path} takes {', '.join(fed)} and {len(exported.state)} values of state, such as {next(iter(exported.state))}")

    train, test = ol.datasets.digits.split(seed=seed)
    random, executor = numpy.random.default_rng(seed), ol.Executor()
    state, apart = dict(exported.first), 0.0
    for step in range(steps):
        rows = random.choice(len(train["label"]), size=64, replace=False)
        batch = {name: array[rows] for name, array in train.items()}
        results = dict(zip(outputs, session.run(None, {**batch, **state}), strict=True))
        state = {name: results[following] for name, following in exported.state.items()}
        (loss,) = executor.run(program, batch, ["loss"], scope=parameters)
        apart = max(apart, float(abs(results["loss"] - loss) / max(1.0, abs(loss))))
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step + 1:3}  loss {results['loss']:.6f} by ONNX Runtime, {loss:.6f} by Oarlock")

    read = {"ONNX Runtime": share_right(logits, test, state), "Oarlock": share_right(logits, test, parameters)}
    print(f"losses differ by {apart:.0e} at most; {', '.join(f'{share:.1%} accuracy by {name}' for name, share in read.items())}")
    return apart


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values and the order of the data")
    arguments.add_argument("--steps", type=int, default=50)
    arguments.add_argument("--path", default="training_step.onnx", help="output file")
    main(**vars(arguments.parse_args()))

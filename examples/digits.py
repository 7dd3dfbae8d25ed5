"""Train a network to read handwritten digits, and save it as one file.

oarlock train examples/digits.py
oarlock infer digits.safetensors --data digits:test
"""

import argparse

import oarlock as ol


def main(seed: int = 0, epochs: int = 20, path: str = "digits.safetensors") -> float:
    """Train on four fifths of the digits, save the model, and return the accuracy on the last fifth."""
    with ol.Program(seed=seed):
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.conv2d(image, filters=32, size=3, padding=1, act="relu")
        hidden = ol.layer.pool2d(hidden, size=2)
        logits = ol.layer.fc(ol.layer.flatten(hidden), 10)
        predict = ol.layer.softmax(logits)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
        accuracy = ol.layer.accuracy(predict, label)

    train, test = ol.datasets.digits.split(seed=seed)
    result = ol.train(
        cost,
        train,
        optimizer=ol.optimizer.Adam(1e-3),
        epochs=epochs,
        batch_size=32,
        validate=test,
        show={"accuracy": accuracy},
    )
    ol.save_model(predict, result.parameters, path)
    print(f"saved {path}")
    return result.history[-1].validation["accuracy"]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the split")
    arguments.add_argument("--epochs", type=int, default=20)
    arguments.add_argument("--path", default="digits.safetensors", help="output file")
    main(**vars(arguments.parse_args()))

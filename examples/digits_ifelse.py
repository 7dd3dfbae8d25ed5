"""Read digits with two networks: rows with digits below 5 go through one, the others through the other, and the logits are merged.

oarlock train examples/digits_ifelse.py
"""

import argparse

import oarlock as ol


def main(seed: int = 0, epochs: int = 30) -> dict[str, float]:
    """Train until the loss on a held-out fifth of the digits is below 0.2; return the validation metrics of the last epoch.

    The label chooses the network, so this demonstrates branches by rows; the accuracy is not that of a classifier.
    """
    with ol.Program(seed=seed):
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        pixels = ol.layer.flatten(image)
        networks = ol.ifelse()
        with networks.true_block():
            networks.output(ol.layer.fc(ol.layer.fc(pixels, 100, act="tanh"), 10))
        with networks.false_block():
            networks.output(ol.layer.fc(ol.layer.fc(pixels, 200, act="tanh"), 10))
        logits = networks(label < 5)
        cost = ol.layer.cross_entropy(logits, label)
        accuracy = ol.layer.accuracy(logits, label)

    train, test = ol.datasets.digits.split(seed=seed)
    momentum = ol.optimizer.Momentum(0.02, 0.9)
    result = ol.train(cost, train, optimizer=momentum, epochs=1, batch_size=50, validate=test, show={"accuracy": accuracy})
    for epoch in range(2, epochs + 1):
        if result.history[-1].validation["loss"] < 0.2:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
    return result.history[-1].validation


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the split")
    arguments.add_argument("--epochs", type=int, default=30, help="maximum number of epochs")
    main(**vars(arguments.parse_args()))

"""Fit a linear model: predict the progression of diabetes within a year from ten measurements.

oarlock train examples/fit_a_line.py
"""

import argparse

import numpy

import oarlock as ol


def load(seed: int) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return 442 patients, four fifths for training: x float32[n 10], standardized on the training rows, y float32[n 1] in hundreds.

    The data set of scikit-learn replaces the house prices of the book chapter, which must be downloaded.
    """
    train, test = ol.datasets.diabetes.split(seed)
    mean, deviation = train["x"].mean(0), train["x"].std(0)
    train, test = ({"x": (part["x"] - mean) / deviation, "y": part["y"] / 100} for part in (train, test))
    return train, test


def main(seed: int = 0, epochs: int = 40, path: str = "line.safetensors") -> dict[str, object]:
    """Train until the error on held-out patients no longer decreases; save the model, and return its predictions for them."""
    with ol.Program(seed=seed):
        x, y = ol.layer.data("x", shape=[10]), ol.layer.data("y", shape=[1])
        predict = ol.layer.fc(x, 1)
        cost = ol.layer.mse(predict, y)
        error = ol.metric.root_mean_squared_error(predict, y)

    train, test = load(seed)
    show = {"error": error}
    result = ol.train(cost, train, optimizer=ol.optimizer.SGD(0.01), epochs=1, batch_size=20, validate=test, show=show)
    errors = [result.history[-1].validation["error"]]
    for epoch in range(2, epochs + 1):
        result = ol.train(result, train, epochs=epoch, validate=test)
        errors.append(result.history[-1].validation["error"])
        if errors[-1] > 0.999 * errors[-2]:
            break

    ol.save_model(predict, result.parameters, path)
    told = ol.infer(ol.load_model(path), {"x": test["x"]})
    print(f"saved {path}; its error is {100 * errors[-1]:.0f}, that of the mean {100 * test['y'].std():.0f}")
    return {"errors": errors, "true": test["y"][:, 0], "told": told[:, 0]}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the split")
    arguments.add_argument("--epochs", type=int, default=40, help="maximum number of epochs")
    arguments.add_argument("--path", default="line.safetensors", help="output file")
    main(**vars(arguments.parse_args()))

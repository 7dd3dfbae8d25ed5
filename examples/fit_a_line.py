"""Fit a line: how far diabetes will have got in a year, told from ten numbers about a patient by one layer.

oarlock train examples/fit_a_line.py
"""

import argparse

import numpy

import oarlock as ol


def load(seed: int) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """442 patients, four fifths to train on: x float32[n 10] of mean 0 and deviation 1 among these, y float32[n 1] by hundreds.

    They come with scikit-learn, and stand for the houses of the chapter, which have to be fetched.
    """
    train, test = ol.datasets.diabetes.split(seed)
    mean, deviation = train["x"].mean(0), train["x"].std(0)
    train, test = ({"x": (part["x"] - mean) / deviation, "y": part["y"] / 100} for part in (train, test))
    return train, test


def main(seed: int = 0, epochs: int = 40, path: str = "line.safetensors") -> dict[str, object]:
    """Train until the error on patients held out no longer falls; save the line, and return what it tells of them."""
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
    print(f"saved {path}: it is {100 * errors[-1]:.0f} off, where the mean of all is {100 * test['y'].std():.0f}")
    return {"errors": errors, "true": test["y"][:, 0], "told": told[:, 0]}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="of the initial values, the order of the data and its split")
    arguments.add_argument("--epochs", type=int, default=40, help="at most so many")
    arguments.add_argument("--path", default="line.safetensors", help="where the line is saved")
    main(**vars(arguments.parse_args()))

"""Classify color images with residual blocks, batch norm and dropout.

oarlock train examples/image_classification.py
"""

import argparse

import numpy

import oarlock as ol

SIZE = 20
CLASSES = ["disk", "ring", "square", "cross", "stripes"]


def make_images(count: int, seed: int) -> dict[str, numpy.ndarray]:
    """Generate noisy shapes of random color, size and position: image float32[count 3 SIZE SIZE], label int64[count].

    They replace CIFAR-10, which must be downloaded. The class depends only on the shape, not on color or position.
    """
    random = numpy.random.default_rng(seed)
    label = random.integers(0, len(CLASSES), count)
    y, x = numpy.mgrid[:SIZE, :SIZE]
    image = numpy.empty((count, 3, SIZE, SIZE), "float32")
    for picture, kind in zip(image, label, strict=True):
        (cy, cx), radius = random.uniform(7, SIZE - 7, 2), random.uniform(4, 7)
        far, wide = numpy.hypot(y - cy, x - cx), numpy.maximum(abs(y - cy), abs(x - cx))
        inside = [
            far <= radius,
            (far <= radius) & (far >= 0.6 * radius),
            wide <= 0.85 * radius,
            (wide <= radius) & (numpy.minimum(abs(y - cy), abs(x - cx)) <= 0.3 * radius),
            (wide <= radius) & ((y + x) // 2 % 2 == 0),
        ][kind]
        front, back = random.random((2, 3, 1, 1))
        back = numpy.where(abs(front - back).sum() > 0.8, back, 1.0 - front)
        picture[:] = numpy.where(inside, front, back) + random.normal(0.0, 0.1, picture.shape)
    return {"image": image, "label": label}


def normalized(x: ol.Var, filters: int, *, stride: int = 1, act: str | None = None) -> ol.Var:
    return ol.layer.batch_norm(ol.layer.conv2d(x, filters=filters, size=3, stride=stride, padding=1, bias=False), act=act)


def residual(x: ol.Var, filters: int, stride: int) -> ol.Var:
    """Apply two convolutions and a shortcut (He et al., 2016)."""
    shortcut = x if stride == 1 else ol.layer.conv2d(x, filters=filters, size=1, stride=stride, bias=False)
    return ol.op.relu(shortcut + normalized(normalized(x, filters, stride=stride, act="relu"), filters))


def main(seed: int = 0, epochs: int = 12, rows: int = 3000, path: str = "shapes.safetensors") -> dict[str, object]:
    """Train until the accuracy on held-out images exceeds 90 %; save the model, and return the metrics and some images."""
    with ol.Program(seed=seed):
        image = ol.layer.data("image", shape=[3, SIZE, SIZE])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = normalized(image, 8, act="relu")
        for filters, stride in ((8, 1), (16, 2), (32, 2)):
            hidden = residual(hidden, filters, stride)
        logits = ol.layer.fc(ol.layer.dropout(ol.layer.flatten(ol.layer.global_pool2d(hidden, mode="average")), rate=0.1), len(CLASSES))
        predict = ol.layer.softmax(logits)
        cost = ol.layer.cross_entropy(logits, label)
        accuracy = ol.metric.accuracy(logits, label)
        confusion = ol.metric.confusion_matrix(logits, label)

    train, test = make_images(rows, seed), make_images(300, seed + 1)
    show = {"accuracy": accuracy}
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(3e-3), epochs=1, batch_size=32, validate=test, show=show)
    measured = [result.history[-1].validation["accuracy"]]
    for epoch in range(2, epochs + 1):
        if measured[-1] > 0.9:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
        measured.append(result.history[-1].validation["accuracy"])

    ol.save_model(predict, result.parameters, path)
    (table,) = ol.evaluate(confusion, test, result).values()
    print(f"saved {path} for {', '.join(CLASSES)}\n{table}")
    some = test["image"][:18]
    told = ol.infer(ol.load_model(path), {"image": some}).argmax(1)
    return {"accuracy": measured, "image": some, "told": [CLASSES[number] for number in told], "confusion": table}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the images, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=12, help="maximum number of epochs")
    arguments.add_argument("--rows", type=int, default=3000, help="number of training images")
    arguments.add_argument("--path", default="shapes.safetensors", help="output file")
    main(**vars(arguments.parse_args()))

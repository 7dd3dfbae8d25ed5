"""A small U-Net that classifies each pixel of a noisy image as disk, square or background.

oarlock train examples/unet.py
"""

import argparse

import numpy

import oarlock as ol

SIZE, CLASSES = 24, 3


def make_images(count: int, seed: int) -> dict[str, numpy.ndarray]:
    """Generate overlapping disks and squares with noise: image float32[count 1 SIZE SIZE], label int64[count SIZE SIZE].

    As in photographs, the class of a pixel depends on its surroundings, not on its own brightness.
    """
    random = numpy.random.default_rng(seed)
    label = numpy.zeros((count, SIZE, SIZE), "int64")
    y, x = numpy.mgrid[:SIZE, :SIZE]
    for row in label:
        for _ in range(random.integers(1, 3)):
            (cy, cx), radius = random.integers(3, SIZE - 3, 2), random.integers(4, 7)
            if random.random() < 0.5:
                row[(y - cy) ** 2 + (x - cx) ** 2 <= radius**2] = 1
            else:
                row[numpy.maximum(abs(y - cy), abs(x - cx)) <= 0.8 * radius] = 2
    image = (label > 0) + random.normal(0.0, 0.2, label.shape)
    return {"image": image[:, None].astype("float32"), "label": label}


def twice(x: ol.Var, filters: int, name: str) -> ol.Var:
    """Apply two convolutions, each with group normalization."""
    for number in (1, 2):
        x = ol.layer.conv2d(x, filters=filters, size=3, padding=1, name=f"{name}.conv{number}")
        x = ol.op.relu(ol.layer.group_norm(x, 4, name=f"{name}.norm{number}"))
    return x


def unet(image: ol.Var) -> ol.Var:
    """Return the logits of the classes at each pixel: float[n 1 SIZE SIZE] -> float[n CLASSES SIZE SIZE] (Ronneberger et al., 2015).

    The image is halved in size twice, then doubled twice and concatenated with the features of the same size.
    """
    first = twice(image, 8, "down1")
    second = twice(ol.layer.pool2d(first, size=2), 16, "down2")
    third = twice(ol.layer.pool2d(second, size=2), 32, "bottom")
    wider = ol.layer.conv_transpose2d(third, filters=16, size=2, stride=2, name="up2.widen")
    wider = twice(ol.layer.concat([second, wider], axis=1), 16, "up2")
    wider = ol.layer.conv_transpose2d(wider, filters=8, size=2, stride=2, name="up1.widen")
    wider = twice(ol.layer.concat([first, wider], axis=1), 8, "up1")
    return ol.layer.conv2d(wider, filters=CLASSES, size=1, name="head")


def pixel_cost(logits: ol.Var, label: ol.Var) -> ol.Var:
    """Return the mean cross entropy over all pixels."""
    return ol.layer.cross_entropy(ol.layer.transpose(logits, axes=(0, 2, 3, 1)), label)


def main(seed: int = 0, epochs: int = 20, rows: int = 800, path: str = "unet.safetensors") -> dict[str, object]:
    """Train until the mean IoU on held-out images is above 0.93; save the model, and return the metrics and some images."""
    with ol.Program(seed=seed):
        image = ol.layer.data("image", [1, SIZE, SIZE])
        label = ol.layer.data("label", [SIZE, SIZE], dtype="int64")
        logits = unet(image)
        cost = pixel_cost(logits, label)
        iou = ol.metric.mean_iou(logits, label, axis=1)
        told = ol.layer.argmax(logits, axis=1)

    train, test = make_images(rows, seed), make_images(200, seed + 1)
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(1e-2), epochs=1, batch_size=16, validate=test, show={"iou": iou})
    measured = [result.history[-1].validation]
    for epoch in range(2, epochs + 1):
        if measured[-1]["iou"] > 0.93:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
        measured.append(result.history[-1].validation)

    ol.save_model(told, result.parameters, path)
    print(f"saved {path}, which classifies each pixel")
    some = {name: array[:6] for name, array in test.items()}
    return {"measured": measured, **some, "told": ol.infer(ol.load_model(path), {"image": some["image"]})}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the images, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=20, help="maximum number of epochs")
    arguments.add_argument("--rows", type=int, default=800, help="number of training images")
    arguments.add_argument("--path", default="unet.safetensors", help="output file")
    main(**vars(arguments.parse_args()))

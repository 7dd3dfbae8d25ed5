"""Generate digits from noise: a network predicts the noise in an image, and a loop removes it step by step.

oarlock train examples/diffusion.py
"""

import argparse

import numpy

import oarlock as ol

STEPS, WIDTH = 60, 256


def amounts() -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Return for each step the noise variance, the kept share of the image, and the product of all kept shares so far: float32[STEPS]."""
    noise = numpy.linspace(1e-3, 0.2, STEPS)
    return noise.astype("float32"), (1 - noise).astype("float32"), numpy.cumprod(1 - noise).astype("float32")


def tell_noise(image: ol.Var, step: ol.Var) -> ol.Var:
    """Predict the noise in images: float[n 64] and the number of noise steps, int64[n] -> float[n 64]."""
    when = ol.layer.embedding(step, (STEPS, WIDTH), initializer=ol.initializer.normal(deviation=0.1), name="when")
    hidden = ol.op.silu(ol.layer.fc(image, WIDTH, name="in") + when)
    for number in range(2):
        inside = ol.layer.fc(ol.layer.layer_norm(hidden, name=f"norm{number}") + when, 2 * WIDTH, act="silu", name=f"wide{number}")
        hidden = hidden + ol.layer.fc(inside, WIDTH, name=f"narrow{number}")
    return ol.layer.fc(ol.layer.layer_norm(hidden, name="norm"), 64, name="out")


def train_cost(image: ol.Var, all_kept: ol.Var) -> ol.Var:
    """Return the error of the predicted noise at random steps: float[n 64] -> float[] (Ho et al., 2020, algorithm 1)."""
    of_row = ol.op.slice(image, axis=1, stop=1)
    share = ol.layer.flatten(ol.op.random_uniform_like(of_row), start=0)
    step = ol.op.cast(share * STEPS, dtype="int64")
    kept = ol.layer.reshape(ol.op.gather(all_kept, step), shape=(-1, 1))
    noise = ol.op.random_normal_like(image)
    return ol.layer.mse(tell_noise(ol.op.sqrt(kept) * image + ol.op.sqrt(1.0 - kept) * noise, step), noise)


def draw(noise: ol.Var, added: ol.Var, kept: ol.Var, all_kept: ol.Var) -> ol.Var:
    """Generate images from noise by all steps in reverse: float[n 64] -> float[n 64] (equations 6 and 7), in a loop of the program."""
    zeros = ol.op.full_batch_size_like(noise, shape=(), value=0.0, dtype="int64")
    at = ol.op.full(shape=(), value=STEPS - 1.0, dtype="int64")
    loop = ol.while_loop(at >= 0, max_trips=STEPS)
    with loop.block():
        amount, share, total = (ol.op.gather(values, at) for values in (added, kept, all_kept))
        before = total / share
        told = (noise - ol.op.sqrt(1.0 - total) * tell_noise(noise, zeros + at)) / ol.op.sqrt(total)
        mean = ol.op.sqrt(before) * amount * ol.op.clip(told, -1.0, 1.0) + ol.op.sqrt(share) * (1.0 - before) * noise
        deviation = ol.op.sqrt(amount * ol.op.relu(1.0 - before) / (1.0 - total))  # 0 in the last step
        loop.carry(noise, mean / (1.0 - total) + deviation * ol.op.random_normal_like(noise))
        loop.carry(at, at - 1)
        loop.update_condition(at - 1 >= 0)
    return loop()[0]


def likeness(drawn: numpy.ndarray, real: numpy.ndarray) -> float:
    """Return the mean distance of drawn images to the nearest real one, divided by the same distance for real images."""

    def nearest(images: numpy.ndarray, *, others: bool) -> float:
        apart = ((images[:, None] - real[None]) ** 2).sum(2)
        return float(numpy.sqrt(numpy.sort(apart, axis=1)[:, int(others)]).mean())

    return nearest(drawn, others=False) / nearest(real[:200], others=True)


def main(seed: int = 0, epochs: int = 240, every: int = 30, path: str = "diffusion.safetensors") -> dict[str, object]:
    """Train until the likeness of the drawn digits is at most 1.4; save the generator, and return likenesses and images."""
    with ol.Program(seed=seed):
        added, kept, all_kept = (ol.Variable(value=values) for values in amounts())  # constants: inputs with a value
        cost = train_cost(ol.layer.data("image", shape=[64]), all_kept)
        drawn = draw(ol.layer.data("noise", shape=[64]), added, kept, all_kept)

    digits = 2.0 * ol.datasets.digits.load()["image"].reshape(-1, 64) - 1.0
    noise = numpy.random.default_rng(seed).normal(size=(100, 64)).astype("float32")
    adam = ol.optimizer.Adam(2e-3, average=ol.optimizer.ExponentialAverage(0.995))
    result = ol.train(cost, {"image": digits}, optimizer=adam, epochs=every, batch_size=64, progress=False)
    likenesses: list[float] = []
    for epoch in range(every, epochs + 1, every):
        result = ol.train(result, {"image": digits}, epochs=epoch, progress=False)
        averaged = ol.optimizer.averages(result.program, result.parameters)
        images = ol.infer(drawn, {"noise": noise}, averaged)
        likenesses.append(likeness(images, digits))
        print(f"epoch {epoch}: digits are {likenesses[-1]:.2f} as far from real ones as these from one another")
        if likenesses[-1] < 1.4:
            break
    ol.save_model(drawn, averaged, path)
    print(f"saved {path}")
    images = ol.infer(ol.load_model(path), {"noise": noise[:40]})
    return {"likeness": likenesses, "image": (images.reshape(-1, 8, 8) + 1) / 2}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the noise and the order of the data")
    arguments.add_argument("--epochs", type=int, default=240, help="maximum number of epochs")
    arguments.add_argument("--every", type=int, default=30, help="number of epochs between measurements")
    arguments.add_argument("--path", default="diffusion.safetensors", help="output file")
    main(**vars(arguments.parse_args()))

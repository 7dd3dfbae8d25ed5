"""A generative adversarial network: one network draws digits, the other distinguishes them from real ones. Two programs train in one scope.

oarlock train examples/gan.py
"""

import argparse

import numpy

import oarlock as ol

NOISE = 16


def draw(noise: ol.Var) -> ol.Var:
    """Draw digits: float[n NOISE] -> float[n 64], ink from 0 to 1."""
    hidden = ol.layer.fc(noise, 128, act="leaky_relu", name="drawing.0")
    return ol.layer.fc(ol.layer.fc(hidden, 128, act="leaky_relu", name="drawing.1"), 64, act="sigmoid", name="drawing.2")


def judge(image: ol.Var) -> ol.Var:
    """Return a logit for each image, high if it looks real: float[n 64] -> float[n]."""
    hidden = ol.layer.fc(image, 128, act="leaky_relu", name="judging.0")
    hidden = ol.layer.dropout(ol.layer.fc(hidden, 64, act="leaky_relu", name="judging.1"), rate=0.3)
    return ol.layer.flatten(ol.layer.fc(hidden, 1, name="judging.2"), start=0)


def cost_of(logits: ol.Var, real: float) -> ol.Var:
    return ol.layer.binary_cross_entropy_with_logits(logits, ol.op.full_like(logits, value=real))


def write(seed: int, rate: float) -> dict[str, tuple[ol.Program, list[ol.Var]]]:
    """Write the programs: one trains the judge, one trains the generator, and one only draws (Goodfellow et al., 2014).

    Parameters with the same name are shared in one scope. Each optimizer updates only its own network.
    """
    written = {}
    for name in ("judging", "drawing", "drawn"):
        with ol.Program(seed=seed) as program:
            image = draw(ol.layer.data("noise", shape=[NOISE]))
            if name == "drawn":
                written[name] = program, [image]
                continue
            if name == "judging":
                real = ol.layer.data("image", shape=[64])
                cost = cost_of(judge(real), 0.9) + cost_of(judge(image), 0.0)
            else:
                cost = cost_of(judge(image), 1.0)
            own = [var for var in program.parameters() if var.name.startswith(name)]
            ol.optimizer.Adam(rate, beta1=0.5).minimize(cost, parameters=own)
            written[name] = program, [cost]
    return written


def likeness(drawn: numpy.ndarray, real: numpy.ndarray) -> float:
    """Return the mean distance of drawn images to the nearest real one, divided by the same distance for real images."""

    def nearest(images: numpy.ndarray, *, others: bool) -> float:
        apart = ((images[:, None] - real[None]) ** 2).sum(2)
        return float(numpy.sqrt(numpy.sort(apart, axis=1)[:, int(others)]).mean())

    return nearest(drawn, others=False) / nearest(real[:200], others=True)


def main(seed: int = 0, epochs: int = 200, rate: float = 1e-3) -> dict[str, object]:
    """Train alternately until the likeness of the drawn digits is at most 1.15; return likenesses and images."""
    digits = ol.datasets.digits.load()["image"].reshape(-1, 64)
    random = numpy.random.default_rng(seed)
    programs, parameters, executor = write(seed, rate), ol.Scope(), ol.Executor()
    for program, _ in programs.values():
        ol.init(program, parameters, only=program.parameters())
    steps = {}
    for name, (program, fetch) in programs.items():  # each optimizer's state in an inner scope, the parameters in the outer one
        steps[name] = executor.prepare(program, fetch, scope=ol.init(program, parameters.new_scope(name)))

    def noise(rows: int) -> dict[str, numpy.ndarray]:
        return {"noise": random.normal(size=(rows, NOISE)).astype("float32")}

    likenesses: list[float] = []
    for epoch in range(1, epochs + 1):
        for chosen in numpy.array_split(random.permutation(len(digits)), len(digits) // 64):
            (judging,) = steps["judging"]({"image": digits[chosen], **noise(len(chosen))})
            (drawing,) = steps["drawing"](noise(len(chosen)))
        (drawn,) = steps["drawn"](noise(100))
        likenesses.append(likeness(drawn, digits))
        if epoch % 10 == 0:
            print(f"epoch {epoch}: costs {judging:.2f} and {drawing:.2f}; digits are {likenesses[-1]:.2f} as far from real ones")
        if likenesses[-1] < 1.15 and epoch >= 20:
            break
    return {"likeness": likenesses, "image": drawn[:40].reshape(-1, 8, 8)}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the noise and the order of the data")
    arguments.add_argument("--epochs", type=int, default=200, help="maximum number of epochs")
    arguments.add_argument("--rate", type=float, default=1e-3, help="learning rate of both optimizers")
    main(**vars(arguments.parse_args()))

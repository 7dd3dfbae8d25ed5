"""Two networks against each other: one draws digits, the other tells them from real ones. Two programs train in one scope.

oarlock train examples/gan.py
"""

import argparse

import numpy

import oarlock as ol

NOISE = 16


def draw(noise: ol.Var) -> ol.Var:
    """Digits: float[n NOISE] -> float[n 64], ink from 0 to 1."""
    hidden = ol.layer.fc(noise, 128, act="leaky_relu", name="drawing.0")
    return ol.layer.fc(ol.layer.fc(hidden, 128, act="leaky_relu", name="drawing.1"), 64, act="sigmoid", name="drawing.2")


def judge(image: ol.Var) -> ol.Var:
    """How real images look, a logit each: float[n 64] -> float[n]."""
    hidden = ol.layer.fc(image, 128, act="leaky_relu", name="judging.0")
    hidden = ol.layer.dropout(ol.layer.fc(hidden, 64, act="leaky_relu", name="judging.1"), rate=0.3)
    return ol.layer.flatten(ol.layer.fc(hidden, 1, name="judging.2"), start=0)


def cost_of(logits: ol.Var, real: float) -> ol.Var:
    return ol.layer.binary_cross_entropy_with_logits(logits, ol.op.full_like(logits, value=real))


def write(seed: int, rate: float) -> dict[str, tuple[ol.Program, list[ol.Var]]]:
    """A program that trains the judge, one that trains who draws, and one that only draws (Goodfellow et al., 2014).

    Parameters of one name are one parameter: in whose scope they lie. Each optimizer is told which are its own.
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
    """How far drawn images are from the nearest real one, by how far real ones are from theirs: at 1 they are as near."""

    def nearest(images: numpy.ndarray, *, others: bool) -> float:
        apart = ((images[:, None] - real[None]) ** 2).sum(2)
        return float(numpy.sqrt(numpy.sort(apart, axis=1)[:, int(others)]).mean())

    return nearest(drawn, others=False) / nearest(real[:200], others=True)


def main(seed: int = 0, epochs: int = 200, rate: float = 1e-3) -> dict[str, object]:
    """Train by turns until what is drawn is no further from real digits than 1.15 times these from one another; return some."""
    digits = ol.datasets.digits.load()["image"].reshape(-1, 64)
    random = numpy.random.default_rng(seed)
    programs, parameters, executor = write(seed, rate), ol.Scope(), ol.Executor()
    for program, _ in programs.values():
        ol.init(program, parameters, only=program.parameters())
    steps = {}
    for name, (program, fetch) in programs.items():  # the state of each optimizer in a scope of its own, around which are the parameters
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
    arguments.add_argument("--seed", type=int, default=0, help="of the initial values, the noise and the order of the data")
    arguments.add_argument("--epochs", type=int, default=200, help="at most so many")
    arguments.add_argument("--rate", type=float, default=1e-3, help="of both optimizers")
    main(**vars(arguments.parse_args()))

"""The digits program follows the same network in plain PyTorch, step by step, from the same initial values."""

import numpy
import pytest
import torch
from classifiers import digits_classifier
from tolerances import PYTORCH
from torch import nn

import oarlock as ol

STEPS = 100
BATCH_SIZE = 32
RATE = {"sgd": 0.1, "momentum": 0.05, "nesterov": 0.05, "adam": 1e-3}
OURS = {
    "sgd": lambda rate: ol.optimizer.SGD(rate),
    "momentum": lambda rate: ol.optimizer.Momentum(rate, mu=0.9),
    "nesterov": lambda rate: ol.optimizer.Momentum(rate, mu=0.9, nesterov=True),
    "adam": lambda rate: ol.optimizer.Adam(rate),
}
THEIRS = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate),
    "momentum": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=0.9),
    "nesterov": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True),
    "adam": lambda parameters, rate: torch.optim.Adam(parameters, lr=rate),
}


@pytest.fixture(scope="module")
def batches() -> list[dict[str, numpy.ndarray]]:
    """Real digits, three epochs of them, in an order that has nothing to do with ours; the last of an epoch is smaller."""
    train, _ = ol.datasets.digits.split(seed=0)
    train["image"] = train["image"].astype("float64")
    generator = numpy.random.default_rng(0)
    found = []
    while len(found) < STEPS:
        order = generator.permutation(len(train["label"]))
        cuts = range(0, len(order), BATCH_SIZE)
        found += [{name: array[order[start : start + BATCH_SIZE]] for name, array in train.items()} for start in cuts]
    return found[:STEPS]


def network(scope: ol.Scope) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """The same network in PyTorch, with the values of the scope; its parameters by our names, in our layout."""
    convolution, dense = nn.Conv2d(1, 32, 3, padding=1), nn.Linear(512, 10)
    module = nn.Sequential(convolution, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), dense).double()
    named = {
        "conv2d_0.w": convolution.weight,
        "conv2d_0.b": convolution.bias,
        "fc_0.w": dense.weight.T,  # a view: it shows what the optimizer makes of the weight
        "fc_0.b": dense.bias,
    }
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(scope[name])
    return module, named


@pytest.mark.parametrize("kind", list(OURS))
def test_a_hundred_steps_follow_pytorch(kind, batches):
    assert len({len(batch["label"]) for batch in batches}) == 2, "some batch is smaller than the others"
    digits = digits_classifier(dtype="float64")
    OURS[kind](RATE[kind]).minimize(digits.cost)
    scope = ol.init(digits.program, ol.Scope())
    module, named = network(scope)
    assert set(named) == {var.name for var in digits.program.parameters()}
    executor, theirs = ol.Executor(), THEIRS[kind](module.parameters(), RATE[kind])
    losses = []
    for step, batch in enumerate(batches):
        (loss,) = executor.run(digits.program, batch, [digits.cost], scope=scope, training=True)
        theirs.zero_grad()
        expected = nn.functional.cross_entropy(module(torch.from_numpy(batch["image"])), torch.from_numpy(batch["label"]))
        expected.backward()
        theirs.step()
        losses.append(expected.item())
        require_close(torch.tensor(loss), expected.detach(), f"loss of step {step}")
        for name, parameter in named.items():
            require_close(scope[name], parameter.detach(), f"{name} after step {step}")
    assert losses[-1] < losses[0] / 2, "both learned something"


def require_close(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    relative, absolute = PYTORCH
    torch.testing.assert_close(actual, expected, rtol=relative, atol=absolute, msg=lambda text: f"{what}: {text}")

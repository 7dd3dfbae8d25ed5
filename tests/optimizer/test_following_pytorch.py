"""Every optimizer goes where `torch.optim` goes, or the equations of its paper in NumPy: 50 steps in float64, by interpreter and plan."""

import functools

import numpy
import pytest
import torch
from optimizer.followed import follow_by_numpy, follow_by_torch, follow_by_us, regression
from tolerances import PYTORCH

import oarlock as ol

optim, ours = torch.optim, ol.optimizer

FOLLOWED = {
    "sgd": (lambda: ours.SGD(0.1), lambda p: optim.SGD(p, lr=0.1)),
    "sgd, decayed": (lambda: ours.SGD(0.1, weight_decay=0.05), lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05)),
    "momentum": (lambda: ours.Momentum(0.05), lambda p: optim.SGD(p, lr=0.05, momentum=0.9)),
    "momentum, nesterov": (
        lambda: ours.Momentum(0.05, 0.8, nesterov=True, weight_decay=0.02),
        lambda p: optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02),
    ),
    "momentum, dampened": (
        lambda: ours.Momentum(0.05, 0.9, dampening=0.3),
        lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3),
    ),
    "adagrad": (lambda: ours.Adagrad(0.1), lambda p: optim.Adagrad(p, lr=0.1)),
    "adagrad, all": (
        lambda: ours.Adagrad(0.1, rate_decay=0.05, initial_sum=0.1, epsilon=1e-6, weight_decay=0.01),
        lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.05, initial_accumulator_value=0.1, eps=1e-6, weight_decay=0.01),
    ),
    "adadelta": (lambda: ours.Adadelta(), lambda p: optim.Adadelta(p)),
    "adadelta, all": (
        lambda: ours.Adadelta(0.5, rho=0.8, epsilon=1e-4, weight_decay=0.01),
        lambda p: optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.01),
    ),
    "rmsprop": (lambda: ours.RMSProp(), lambda p: optim.RMSprop(p)),
    "rmsprop, centred": (
        lambda: ours.RMSProp(0.02, rho=0.9, centered=True, weight_decay=0.01, epsilon=1e-4),
        lambda p: optim.RMSprop(p, lr=0.02, alpha=0.9, centered=True, weight_decay=0.01, eps=1e-4),
    ),
    "rmsprop, momentum": (
        lambda: ours.RMSProp(0.01, momentum=0.7, centered=True),
        lambda p: optim.RMSprop(p, lr=0.01, momentum=0.7, centered=True),
    ),
    "adam": (lambda: ours.Adam(0.02), lambda p: optim.Adam(p, lr=0.02)),
    "adam, all": (
        lambda: ours.Adam(0.02, beta1=0.8, beta2=0.95, epsilon=1e-5, amsgrad=True, weight_decay=0.1),
        lambda p: optim.Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-5, amsgrad=True, weight_decay=0.1),
    ),
    "adamw": (lambda: ours.AdamW(0.02), lambda p: optim.AdamW(p, lr=0.02)),
    "adamw, amsgrad": (
        lambda: ours.AdamW(0.02, weight_decay=0.2, amsgrad=True),
        lambda p: optim.AdamW(p, lr=0.02, weight_decay=0.2, amsgrad=True),
    ),
    "adamax": (lambda: ours.Adamax(0.02), lambda p: optim.Adamax(p, lr=0.02)),
    "adamax, all": (
        lambda: ours.Adamax(0.02, beta1=0.8, beta2=0.9, epsilon=1e-3, weight_decay=0.05),
        lambda p: optim.Adamax(p, lr=0.02, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.05),
    ),
    "nadam": (lambda: ours.NAdam(0.02), lambda p: optim.NAdam(p, lr=0.02)),
    "nadam, decoupled": (
        lambda: ours.NAdam(0.02, beta1=0.8, beta2=0.9, momentum_decay=0.1, weight_decay=0.1, decoupled_weight_decay=True),
        lambda p: optim.NAdam(p, lr=0.02, betas=(0.8, 0.9), momentum_decay=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "radam": (lambda: ours.RAdam(0.02), lambda p: optim.RAdam(p, lr=0.02)),
    "radam, all": (
        lambda: ours.RAdam(0.02, beta1=0.8, beta2=0.9, weight_decay=0.1, decoupled_weight_decay=True),
        lambda p: optim.RAdam(p, lr=0.02, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "rprop": (lambda: ours.Rprop(), lambda p: optim.Rprop(p)),
    "rprop, all": (
        lambda: ours.Rprop(0.05, growth=1.5, shrinkage=0.3, least=1e-3, most=0.2),
        lambda p: optim.Rprop(p, lr=0.05, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2)),
    ),
    "groups": (
        lambda: ours.Groups([("*.b", ours.SGD(0.1)), (["second.w"], ours.Momentum(0.05))], otherwise=ours.AdamW(0.02)),
        lambda p: Together(optim.SGD([p[1]], lr=0.1), optim.SGD([p[2]], lr=0.05, momentum=0.9), optim.AdamW([p[0]], lr=0.02)),
    ),
}


class Together:
    """Several optimizers of PyTorch, one after another."""

    def __init__(self, *optimizers: torch.optim.Optimizer):
        self.optimizers = optimizers

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def require_same(scope: ol.Scope, expected: dict[str, torch.Tensor]) -> None:
    for name, value in expected.items():
        torch.testing.assert_close(scope[name], value, rtol=PYTORCH[0], atol=PYTORCH[1])


@functools.cache
def expected_of(name: str) -> dict[str, torch.Tensor]:
    return follow_by_torch(FOLLOWED[name][1])


@pytest.mark.parametrize("name", FOLLOWED)
def test_an_optimizer_follows_pytorch(name):
    program, _ = regression(FOLLOWED[name][0]())
    scope, _ = follow_by_us(program)
    require_same(scope, expected_of(name))


@pytest.mark.parametrize("name", [name for name in FOLLOWED if "," not in name or "all" in name])
def test_an_optimizer_follows_pytorch_where_the_program_is_interpreted(name):
    program, _ = regression(FOLLOWED[name][0]())
    scope, _ = follow_by_us(program, interpret=True)
    require_same(scope, expected_of(name))


# References of papers, for what PyTorch does not have, or computes in bfloat16


def lamb(w, dw, state, t, *, rate=0.02, beta1=0.9, beta2=0.999, epsilon=1e-6, decay=0.1):
    """You et al., 2020, algorithm 2."""
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * dw
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * dw**2
    r = (state["m"] / (1 - beta1**t)) / (numpy.sqrt(state["v"] / (1 - beta2**t)) + epsilon)
    u = r + decay * w
    long, moved = numpy.linalg.norm(w), numpy.linalg.norm(u)
    return w - rate * (long / moved if long and moved else 1.0) * u


def lars(w, dw, state, t, *, rate=0.5, mu=0.9, trust=0.01, decay=0.1):
    """You, Gitman and Ginsburg, 2017, algorithm 1."""
    long, steep = numpy.linalg.norm(w), numpy.linalg.norm(dw)
    own = trust * long / (steep + decay * long) if long and steep else 1.0
    state["v"] = mu * state.get("v", 0) + rate * own * (dw + decay * w)
    return w - state["v"]


def lion(w, dw, state, t, *, rate=0.01, beta1=0.9, beta2=0.99, decay=0.1):
    """Chen et al., 2023, algorithm 2."""
    m = state.get("m", numpy.zeros_like(w))
    state["m"] = beta2 * m + (1 - beta2) * dw
    return w - rate * (numpy.sign(beta1 * m + (1 - beta1) * dw) + decay * w)


def ftrl(w, dw, state, t, *, alpha=0.3, beta=0.5, lambda1=0.05, lambda2=0.2):
    """McMahan et al., 2013, algorithm 1."""
    z, n = state.get("z", numpy.zeros_like(w)), state.get("n", numpy.zeros_like(w))
    sigma = (numpy.sqrt(n + dw**2) - numpy.sqrt(n)) / alpha
    state["z"], state["n"] = z, n = z + dw - sigma * w, n + dw**2
    moved = -(z - numpy.sign(z) * lambda1) / ((beta + numpy.sqrt(n)) / alpha + lambda2)
    return numpy.where(numpy.abs(z) <= lambda1, 0.0, moved)


def muon(w, dw, state, t, *, rate=0.05, mu=0.9, nesterov=True, decay=0.1, match=False):
    """Jordan et al., 2024, with the mean velocity of `torch.optim.Muon`; the bias, by plain descent."""
    if w.ndim != 2:
        return w - 0.1 * dw
    state["b"] = mu * state.get("b", 0) + (1 - mu) * dw
    x = (1 - mu) * dw + mu * state["b"] if nesterov else state["b"]
    high = len(x) > x.shape[1]
    x = x.T if high else x
    x = x / max(numpy.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    x = x.T if high else x
    scale = 0.2 * max(x.shape) ** 0.5 if match else max(1.0, len(x) / x.shape[1]) ** 0.5
    return w - rate * decay * w - rate * scale * x


def beside_sgd(optimizer):
    return ours.Groups([(lambda var: var.ndim == 2, optimizer)], otherwise=ours.SGD(0.1))


OF_PAPERS = {
    "lamb": (lambda: ours.Lamb(0.02, weight_decay=0.1), lamb),
    "lamb, without decay": (lambda: ours.Lamb(0.02, beta1=0.8), functools.partial(lamb, decay=0.0, beta1=0.8)),
    "lars": (lambda: ours.Lars(0.5, trust=0.01, weight_decay=0.1), lars),
    "lion": (lambda: ours.Lion(0.01, weight_decay=0.1), lion),
    "ftrl": (lambda: ours.Ftrl(0.3, beta=0.5, sparsity=0.05, shrinkage=0.2), ftrl),
    "muon": (lambda: beside_sgd(ours.Muon(0.05, mu=0.9)), muon),
    "muon, no nesterov": (
        lambda: beside_sgd(ours.Muon(0.05, mu=0.9, nesterov=False, scale="match_rms_adamw")),
        functools.partial(muon, nesterov=False, match=True),
    ),
}


@pytest.mark.parametrize(
    ("name", "interpret"), [*((name, False) for name in OF_PAPERS), *((name, True) for name in OF_PAPERS if "," not in name)]
)
def test_an_optimizer_follows_its_paper(name, interpret):
    make, rule = OF_PAPERS[name]
    program, _ = regression(make())
    scope, _ = follow_by_us(program, interpret=interpret)
    require_same(scope, follow_by_numpy(rule))


def test_muon_in_bfloat16_goes_where_pytorch_goes():
    program, _ = regression(beside_sgd(ours.Muon(0.05, mu=0.9, dtype="bfloat16")))
    scope, _ = follow_by_us(program, steps=5)
    expected = follow_by_torch(lambda p: Together(optim.Muon([p[0], p[2]], lr=0.05, momentum=0.9), optim.SGD([p[1]], lr=0.1)), steps=5)
    for name, value in expected.items():
        torch.testing.assert_close(scope[name], value, rtol=2e-2, atol=2e-2)


def test_every_optimizer_is_followed():
    """One that is added without a twin fails here."""
    named = {name.partition(",")[0] for name in (*FOLLOWED, *OF_PAPERS)}
    kinds = {name.lower() for name in ours.__all__ if isinstance(found := getattr(ours, name), type) and issubclass(found, ours.Optimizer)}
    assert kinds - {"optimizer", "lbfgs", "lossscaling"} == named, "test_lbfgs.py follows that one; the last updates by another"

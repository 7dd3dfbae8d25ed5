"""One step of an optimizer, as an op: parameter and state in, their next values out."""

import math

import torch

from oarlock.registry import Case, operator

__all__ = ["adam", "momentum", "sgd"]


@operator(
    "param: float[...s], grad: float[...s], rate: float64[] -> next: float[...s]",
    cases=[Case(param=[1.0, 2.0], grad=[10.0, -10.0], rate=0.1, next=[0.0, 3.0])],
)
def sgd(param, grad, rate):
    """``next = param - rate * grad``."""
    return torch.sub(param, grad, alpha=rate.item())


@operator(
    "param: float[...s], grad: float[...s], velocity: float[...s], rate: float64[] -> next: float[...s], next_velocity: float[...s]",
    cases=[
        Case(param=[1.0], grad=[2.0], velocity=[4.0], rate=0.1, mu=0.5, next=[0.6], next_velocity=[4.0]),
        Case(param=[1.0], grad=[2.0], velocity=[4.0], rate=0.1, mu=0.5, nesterov=True, next=[0.6], next_velocity=[4.0]),
    ],
)
def momentum(param, grad, velocity, rate, *, mu: float = 0.9, nesterov: bool = False):
    """``v' = mu v + grad``; ``next = param - rate v'``, or with ``nesterov`` ``param - rate (grad + mu v')``."""
    velocity = torch.add(grad, velocity, alpha=mu)
    step = torch.add(grad, velocity, alpha=mu) if nesterov else velocity
    return torch.sub(param, step, alpha=rate.item()), velocity


@operator(
    "param: float[...s], grad: float[...s], moment1: float[...s], moment2: float[...s], step: int64[], rate: float64[]"
    " -> next: float[...s], next_moment1: float[...s], next_moment2: float[...s]",
    cases=[
        Case(
            param=[1.0], grad=[0.5], moment1=[0.0], moment2=[0.0], step=1, rate=0.1, epsilon=0.0,
            next=[0.9], next_moment1=[0.05], next_moment2=[0.00025],
        )
    ],
)  # fmt: skip
def adam(param, grad, moment1, moment2, step, rate, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
    """Adam (Kingma and Ba, 2015, algorithm 1); ``step`` counts from 1.

    ``next = param - rate (m / (1 - beta1**step)) / (sqrt(v / (1 - beta2**step)) + epsilon)``.
    """
    count = step.item()
    moment1 = torch.lerp(moment1, grad, 1.0 - beta1)
    moment2 = torch.mul(moment2, beta2).addcmul_(grad, grad, value=1.0 - beta2)
    spread = torch.sqrt(moment2).div_(math.sqrt(1.0 - beta2**count)).add_(epsilon)
    return torch.addcdiv(param, moment1, spread, value=-rate.item() / (1.0 - beta1**count)), moment1, moment2

"""Six workloads more, unlike W1 to W13: another cell, another number type, loops in rows of rows, a switch, two directions, no loop at all.

They show that what makes the others fast is no matter of their shapes. The interface is that of `workloads`; `benchmarks/peer_torch.py`
does the same work in plain PyTorch.
"""

from collections.abc import Callable

import numpy
from workloads import Workload

import oarlock as ol
from further import models
from further.data import draw

__all__ = ["INFERENCE", "STEPS", "TRAINING", "describe", "draw", "write"]

TRAINING: dict[str, Callable[[], ol.Var]] = {
    "X1": models.minimal_gated_unit,
    "X2": models.documents,
    "X3": models.one_of_two_networks,
    "X4": models.two_directions_with_attention,
    "X5": models.residual_perceptron,
    "X6": models.chain_of_gates,
}
"""Each function writes a model and its training step into the current program, and returns the cost."""

INFERENCE: dict[str, Callable[[], ol.Var]] = {}

STEPS: dict[str, int] = {}
"""Workloads whose steps change as they train, and how many are run: none."""


def describe(name: str) -> Workload:
    """The workload called `name`, X1 to X6. Raises KeyError."""
    return write(name, *draw(name))


def write(name: str, weights: dict[str, numpy.ndarray], feed: dict[str, object]) -> Workload:
    """`describe`, of data that is drawn already."""
    with ol.Program() as program:
        cost = TRAINING[name]()
    return Workload(program, cost, {}, feed, weights, training=True)

"""The workloads by which Oarlock is compared with other frameworks: each a model, written as its user would write it.

`describe("W5")` gives the program, what is fed, the weights to start from and what is fetched. Data and weights follow from
NumPy's generator alone (`data.py`), so that any framework can do the same work and print the same losses.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy

import oarlock as ol
from workloads import branching, images, language, perceptrons, ragged, recurrent
from workloads.data import draw

__all__ = ["INFERENCE", "STEPS", "TRAINING", "Workload", "describe", "draw", "write"]

TRAINING: dict[str, Callable[[], ol.Var]] = {
    "W1": perceptrons.mlp_small,
    "W2": perceptrons.mlp_large,
    "W3": images.lenet,
    "W4": images.resnet_ish,
    "W5": recurrent.rnn_custom,
    "W6": recurrent.lstm_custom,
    "W7": recurrent.lstm_builtin,
    "W8": recurrent.rnn_gated_custom_small,
    "W9": language.char_lm_gru,
    "W10": language.transformer,
    "W11": branching.ifelse_rows,
    "W12": branching.while_dynamic,
    "W13": ragged.ragged_rnn,
}
"""Each function writes a model and its training step into the current program, and returns the cost."""

INFERENCE: dict[str, Callable[[], ol.Var]] = {
    "I1": perceptrons.mlp_small_logits,
    "I2": images.lenet_logits,
    "I3": recurrent.lstm_custom_outputs,
}
"""These write a model alone, and return what it gives."""

STEPS = {"W12": 300}
"""Workloads whose steps change as they train, and how many steps are run, always the same."""


@dataclass(frozen=True)
class Workload:
    """A workload, ready for an executor. `fetch` is the cost, or the output of a model; `report` is fetched once, at the end."""

    program: ol.Program
    fetch: ol.Var
    report: dict[str, ol.Var]
    feed: dict[str, object]
    weights: dict[str, numpy.ndarray]
    training: bool

    def scope(self) -> ol.Scope:
        """A new scope with the weights that every framework starts from. Raises UndefinedVarError for one that the model does not have."""
        scope = ol.init(self.program, ol.Scope())
        for name, value in self.weights.items():
            scope.set(self.program.main.var(name).name, value)
        return scope


def describe(name: str) -> Workload:
    """The workload called `name`, W1 to W13 or I1 to I3. Raises KeyError."""
    return write(name, *draw(name))


def write(name: str, weights: dict[str, numpy.ndarray], feed: dict[str, object]) -> Workload:
    """`describe`, of data that is drawn already."""
    with ol.Program() as program:
        fetch = (TRAINING | INFERENCE)[name]()
    return Workload(program, fetch, dict(program.targets), feed, weights, name in TRAINING)

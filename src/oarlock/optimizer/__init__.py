"""Optimizers: gradients, and the ops that turn them into the next parameters."""

from oarlock.errors import no_attribute
from oarlock.optimizer.adam import Adam
from oarlock.optimizer.momentum import Momentum
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.sgd import SGD

__all__ = ["SGD", "Adam", "Momentum", "Optimizer"]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)

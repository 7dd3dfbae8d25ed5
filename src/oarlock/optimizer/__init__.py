"""Optimizers: gradients, and the ops that turn them into the next parameters."""

from oarlock.ir.update_settings import UpdateSettings
from oarlock.optimizer.adam import Adam
from oarlock.optimizer.momentum import Momentum
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.sgd import SGD
from oarlock.suggestions import no_attribute, refuse_calls

__all__ = ["SGD", "Adam", "Momentum", "Optimizer", "UpdateSettings"]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)


refuse_calls(__name__)

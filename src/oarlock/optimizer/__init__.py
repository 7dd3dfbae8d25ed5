"""Optimizers: gradients, and the ops that update parameters with them."""

from oarlock.ir.update_settings import UpdateSettings
from oarlock.optimizer import schedule
from oarlock.optimizer.adadelta import Adadelta
from oarlock.optimizer.adagrad import Adagrad
from oarlock.optimizer.adam import Adam, AdamW
from oarlock.optimizer.adamax import Adamax
from oarlock.optimizer.averaging import ExponentialAverage, UniformAverage, averages
from oarlock.optimizer.clipping import ClipByGlobalNorm, ClipByNorm, ClipByValue
from oarlock.optimizer.ftrl import Ftrl
from oarlock.optimizer.groups import Groups
from oarlock.optimizer.lamb import Lamb
from oarlock.optimizer.lars import Lars
from oarlock.optimizer.last_accumulation import apply_accumulated
from oarlock.optimizer.lbfgs import LBFGS
from oarlock.optimizer.lion import Lion
from oarlock.optimizer.loss_scaling import LossScaling
from oarlock.optimizer.momentum import Momentum
from oarlock.optimizer.muon import Muon
from oarlock.optimizer.nadam import NAdam
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.radam import RAdam
from oarlock.optimizer.rmsprop import RMSProp
from oarlock.optimizer.rprop import Rprop
from oarlock.optimizer.sgd import SGD
from oarlock.optimizer.step import Step
from oarlock.registry.checked_call import publish

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ClipByGlobalNorm",
    "ClipByNorm",
    "ClipByValue",
    "ExponentialAverage",
    "Ftrl",
    "Groups",
    "Lamb",
    "Lars",
    "Lion",
    "LossScaling",
    "Momentum",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "Step",
    "UniformAverage",
    "UpdateSettings",
    "apply_accumulated",
    "averages",
    "schedule",
]

publish(__name__)

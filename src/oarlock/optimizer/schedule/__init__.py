"""Schedules: learning rates that the program computes from the number of updates.

    ol.optimizer.SGD(ol.optimizer.schedule.WarmUp(ol.optimizer.schedule.CosineDecay(0.1, 10_000), 500))

In the equations ``t`` is the number of previous updates, 0 in the first step. With gradient accumulation, several steps form one update.
"""

from oarlock.optimizer.schedule.cosine import CosineDecay, CosineRestarts
from oarlock.optimizer.schedule.cycle import Cyclic, OneCycle
from oarlock.optimizer.schedule.decay import (
    Constant,
    ExponentialDecay,
    InverseTimeDecay,
    LinearDecay,
    MultiStepDecay,
    NaturalExponentialDecay,
    PolynomialDecay,
    StepDecay,
)
from oarlock.optimizer.schedule.piecewise import Piecewise, Sequential
from oarlock.optimizer.schedule.plateau import ReduceOnPlateau
from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.optimizer.schedule.warm_up import Noam, WarmUp
from oarlock.registry.checked_call import publish

__all__ = [
    "Constant",
    "CosineDecay",
    "CosineRestarts",
    "Cyclic",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LinearDecay",
    "MultiStepDecay",
    "NaturalExponentialDecay",
    "Noam",
    "OneCycle",
    "Piecewise",
    "PolynomialDecay",
    "Progress",
    "ReduceOnPlateau",
    "Schedule",
    "Sequential",
    "StepDecay",
    "WarmUp",
]

publish(__name__)

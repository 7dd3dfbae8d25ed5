"""Schedules: learning rates that the program computes, of how many updates there have been.

    ol.optimizer.SGD(ol.optimizer.schedule.WarmUp(ol.optimizer.schedule.CosineDecay(0.1, 10_000), 500))

In the equations ``t`` is the number of updates before this one, 0 in the first step. Where an optimizer accumulates gradients, an update
is one for several steps.
"""

from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.suggestions import no_attribute

__all__ = ["Progress", "Schedule"]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)

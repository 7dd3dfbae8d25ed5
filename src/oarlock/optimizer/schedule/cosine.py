"""Cosine schedules, with and without restarts."""

import math
from dataclasses import dataclass

from oarlock.ir.var import Var
from oarlock.op.choice import minimum
from oarlock.op.elementwise import remainder
from oarlock.op.rounding import floor
from oarlock.op.trigonometry import cos
from oarlock.op.unary import log
from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.registry.range_check import require_count, require_number

__all__ = ["CosineDecay", "CosineRestarts"]


@dataclass(frozen=True)
class CosineDecay(Schedule):
    """Cosine decay: ``end + (rate - end) (1 + cos(pi min(t, steps) / steps)) / 2`` (Loshchilov and Hutter, 2017, equation 5).

    Like `torch.optim.lr_scheduler.CosineAnnealingLR` up to step `steps`; that one then rises again, while this one stays at `end`. Raises
    ArgumentError for an argument out of range.
    """

    rate: float
    steps: int
    end: float = 0.0

    def __post_init__(self) -> None:
        require_number("CosineDecay: rate", self.rate, above=0.0)
        require_count("CosineDecay: steps", self.steps)
        require_number("CosineDecay: end", self.end, least=0.0)

    def __call__(self, progress: Progress) -> Var:
        done = minimum(progress.step, progress.number(float(self.steps))) / float(self.steps)
        return _wave(float(self.rate), float(self.end), done)


@dataclass(frozen=True)
class CosineRestarts(Schedule):
    """Cosine decay with restarts: ``end + (rate - end) (1 + cos(pi c / p)) / 2``, where ``c`` restarts at 0 after each period ``p``.

    The first period has `period` steps; each is `multiplier` times as long as the previous one and starts at `restart_factor` times its
    rate (Loshchilov and Hutter, 2017, equation 5). Like `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`. Raises ArgumentError for an
    argument out of range.
    """

    rate: float
    period: int
    multiplier: int = 1
    end: float = 0.0
    restart_factor: float = 1.0

    def __post_init__(self) -> None:
        require_number("CosineRestarts: rate", self.rate, above=0.0)
        require_count("CosineRestarts: period", self.period)
        require_count("CosineRestarts: multiplier", self.multiplier)
        require_number("CosineRestarts: end", self.end, least=0.0)
        require_number("CosineRestarts: restart_factor", self.restart_factor, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        step, period, multiplier = progress.step, float(self.period), float(self.multiplier)
        if self.multiplier == 1:
            restarts = floor(step / period)
            done = remainder(step, progress.number(period)) / period
        else:
            # rounding may yield 1e-15 less than an integer
            restarts = floor(log(step / period * (multiplier - 1.0) + 1.0) / math.log(multiplier) + 1e-9)
            longer = multiplier**restarts
            done = (step - period * (longer - 1.0) / (multiplier - 1.0)) / (period * longer)
        rate = float(self.rate) if self.restart_factor == 1.0 else float(self.rate) * float(self.restart_factor) ** restarts
        return _wave(rate, float(self.end), done)


def _wave(start: float | Var, end: float, done: Var) -> Var:
    return end + (start - end) * (0.5 + 0.5 * cos(math.pi * done))

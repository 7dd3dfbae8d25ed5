"""Cyclical schedules."""

import math
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import minimum, where
from oarlock.op.rounding import floor
from oarlock.op.trigonometry import cos
from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.registry.range_check import require_choice, require_count, require_number

__all__ = ["Cyclic", "OneCycle"]


@dataclass(frozen=True)
class Cyclic(Schedule):
    """Linear cycles from `least` to `most` in `up` steps and back in `down` steps, by default `up` (Smith, 2017, section 3).

    `mode` "triangular2" halves the height of each cycle; "exp_range" multiplies the height by ``gamma**t``. Like
    `torch.optim.lr_scheduler.CyclicLR`. Raises ArgumentError for an argument out of range or an invalid mode.
    """

    least: float
    most: float
    up: int = 2000
    down: int | None = None
    mode: str = "triangular"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        require_number("Cyclic: least", self.least, least=0.0)
        require_number("Cyclic: most", self.most, above=float(self.least))
        require_count("Cyclic: up", self.up)
        if self.down is not None:
            require_count("Cyclic: down", self.down)
        require_choice("Cyclic: mode", self.mode, ("triangular", "triangular2", "exp_range"))
        require_number("Cyclic: gamma", self.gamma, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        length = float(self.up + (self.up if self.down is None else self.down))
        share = self.up / length
        cycles = progress.step / length
        number = floor(cycles)
        done = cycles - number
        height = where(done <= share, done / share, (1.0 - done) / (1.0 - share))
        if self.mode == "triangular2":
            height = height / 2.0**number
        elif self.mode == "exp_range":
            height = height * float(self.gamma) ** progress.step
        return float(self.least) + (float(self.most) - float(self.least)) * height


@dataclass(frozen=True)
class OneCycle(Schedule):
    """A rise from ``rate / start_divisor`` to `rate`, then a fall to ``rate / (start_divisor end_divisor)`` (Smith and Topin, 2018).

    `rising` is the fraction of `steps` in which it rises; `shape` is "cosine" or "linear". With `three_phases`, the rate falls
    symmetrically to its start, then to the end. After `steps` it is constant. Like `torch.optim.lr_scheduler.OneCycleLR`, without cycling
    the momentum. Raises ArgumentError for an argument out of range, an invalid shape, and phases without steps.
    """

    rate: float
    steps: int
    rising: float = 0.3
    start_divisor: float = 25.0
    end_divisor: float = 1e4
    shape: str = "cosine"
    three_phases: bool = False

    def __post_init__(self) -> None:
        require_number("OneCycle: rate", self.rate, above=0.0)
        require_count("OneCycle: steps", self.steps, least=2)
        require_number("OneCycle: rising", self.rising, above=0.0, below=0.5 if self.three_phases else 1.0)
        require_number("OneCycle: start_divisor", self.start_divisor, above=0.0)
        require_number("OneCycle: end_divisor", self.end_divisor, above=0.0)
        require_choice("OneCycle: shape", self.shape, ("cosine", "linear"))
        if any(phase[1] <= phase[0] for phase in self._phases()):
            raise ArgumentError(f"OneCycle: {self.steps} steps are too few: some phase would have none", location=here())

    def _phases(self) -> list[tuple[float, float, float, float]]:
        """Return the first step, last step, first rate and last rate of each phase."""
        least, most = self.rate / self.start_divisor, self.rate
        top, last = self.rising * self.steps - 1.0, self.steps - 1.0
        if not self.three_phases:
            return [(0.0, top, least, most), (top, last, most, least / self.end_divisor)]
        bottom = 2.0 * self.rising * self.steps - 2.0
        return [(0.0, top, least, most), (top, bottom, most, least), (bottom, last, least, least / self.end_divisor)]

    def __call__(self, progress: Progress) -> Var:
        step = minimum(progress.step, progress.number(self.steps - 1.0))
        parts = self._phases()
        rate = self._between(step, *parts[-1])
        for part in reversed(parts[:-1]):
            rate = where(step <= part[1], self._between(step, *part), rate)
        return rate

    def _between(self, step: Var, begin: float, end: float, start: float, stop: float) -> Var:
        done = (step - begin) / (end - begin)
        return stop + (start - stop) * ((0.5 + 0.5 * cos(math.pi * done)) if self.shape == "cosine" else (1.0 - done))

"""Schedules with a warm-up."""

from dataclasses import dataclass

from oarlock.ir.var import Var
from oarlock.op.choice import maximum, minimum
from oarlock.op.unary import rsqrt
from oarlock.optimizer.schedule.schedule import Progress, Schedule, ScheduleLike, require_schedule
from oarlock.registry.range_check import require_count, require_number

__all__ = ["Noam", "WarmUp"]


@dataclass(frozen=True)
class WarmUp(Schedule):
    """A linear warm-up from `start_factor` times the first rate of `into` to that rate in `steps` steps; then `into` starts.

    ``min(1, start_factor + (1 - start_factor) t / steps) into(max(t - steps, 0))``; `into` is a schedule or a number (Goyal et al., 2017,
    section 2.2). Raises ArgumentError for an argument out of range, and for an invalid schedule.
    """

    into: ScheduleLike
    steps: int
    start_factor: float = 0.0

    def __post_init__(self) -> None:
        require_schedule("WarmUp: into", self.into)
        require_count("WarmUp: steps", self.steps)
        require_number("WarmUp: start_factor", self.start_factor, least=0.0, most=1.0)

    def __call__(self, progress: Progress) -> Var:
        steps, start = float(self.steps), float(self.start_factor)
        factor = minimum(start + (1.0 - start) * (progress.step / steps), progress.number(1.0))
        later = maximum(progress.step - steps, progress.number(0.0))
        return factor * progress.at(later).value_of(self.into)


@dataclass(frozen=True)
class Noam(Schedule):
    """The schedule of the transformer: ``scale width**-0.5 min((t + 1)**-0.5, (t + 1) warm_up**-1.5)``.

    `width` is the width of the model (Vaswani et al., 2017, equation 3, whose steps start at 1). Raises ArgumentError for an argument out
    of range.
    """

    width: int
    warm_up: int = 4000
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_count("Noam: width", self.width)
        require_count("Noam: warm_up", self.warm_up)
        require_number("Noam: scale", self.scale, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        step = progress.step + 1.0
        return float(self.scale) * float(self.width) ** -0.5 * minimum(rsqrt(step), float(self.warm_up) ** -1.5 * step)

"""Schedules composed of parts: constants, or other schedules in sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.control.switch import switch
from oarlock.op.choice import maximum, where
from oarlock.optimizer.schedule.decay import require_milestones
from oarlock.optimizer.schedule.schedule import Progress, Schedule, ScheduleLike, require_schedule
from oarlock.registry.range_check import require_number

__all__ = ["Piecewise", "Sequential"]


@dataclass(frozen=True)
class Piecewise(Schedule):
    """Constant rates between boundaries: the first of `rates` while ``t`` is below the first of `boundaries`, and so on.

    A `switch` of the program chooses the rate. Raises ArgumentError unless the boundaries increase and there is exactly one more rate, and
    for a negative rate.
    """

    boundaries: Sequence[int]
    rates: Sequence[float]

    def __post_init__(self) -> None:
        require_milestones("Piecewise: boundaries", self.boundaries)
        for rate in self.rates:
            require_number("Piecewise: a rate", rate, least=0.0)
        _require_one_more("Piecewise", len(self.boundaries), len(self.rates), "boundaries", "rates")

    def __call__(self, progress: Progress) -> Var:
        if not self.boundaries:
            return progress.number(float(self.rates[0]))
        choice = switch()
        for boundary, rate in zip(self.boundaries, self.rates, strict=False):
            with choice.case(progress.step < float(boundary)):
                choice.output(progress.number(float(rate)))
        with choice.default():
            choice.output(progress.number(float(self.rates[-1])))
        rate = choice()
        assert isinstance(rate, Var)
        return rate


@dataclass(frozen=True)
class Sequential(Schedule):
    """Schedules in sequence: the next of `schedules` starts, at its own step 0, when ``t`` reaches the next of `milestones`.

    Like `torch.optim.lr_scheduler.SequentialLR`. Raises ArgumentError unless the milestones increase and there is exactly one more
    schedule, and for an invalid schedule.
    """

    schedules: Sequence[ScheduleLike]
    milestones: Sequence[int]

    def __post_init__(self) -> None:
        for schedule in self.schedules:
            require_schedule("Sequential: a schedule", schedule)
        require_milestones("Sequential: milestones", self.milestones)
        _require_one_more("Sequential", len(self.milestones), len(self.schedules), "milestones", "schedules")

    def __call__(self, progress: Progress) -> Var:
        rate = progress.value_of(self.schedules[0])
        for milestone, schedule in zip(self.milestones, self.schedules[1:], strict=True):
            later = maximum(progress.step - float(milestone), progress.number(0.0))
            rate = where(progress.step < float(milestone), rate, progress.at(later).value_of(schedule))
        return rate


def _require_one_more(what: str, few: int, many: int, of_few: str, of_many: str) -> None:
    if many != few + 1:
        raise ArgumentError(f"{what}: {few} {of_few} require {few + 1} {of_many}, not {many}", location=here())

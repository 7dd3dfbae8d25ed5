"""Decaying schedules: constant, stepwise, exponential, inverse time, polynomial and linear."""

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import maximum, minimum
from oarlock.op.comparison import greater_equal
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import sum_
from oarlock.op.rounding import ceil, floor
from oarlock.op.unary import exp
from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.registry.range_check import require_count, require_number

__all__ = [
    "Constant",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LinearDecay",
    "MultiStepDecay",
    "NaturalExponentialDecay",
    "PolynomialDecay",
    "StepDecay",
    "require_milestones",
]


def require_milestones(what: str, numbers: Sequence[int]) -> None:
    """Raise ArgumentError unless `numbers` are increasing integers from 1."""
    for number in numbers:
        require_count(what, number)
    if list(numbers) != sorted(set(numbers)):
        raise ArgumentError(f"{what}: they must be increasing, unlike {list(numbers)!r:.60}", location=here())


@dataclass(frozen=True)
class Constant(Schedule):
    """A constant rate, as a part of other schedules. Raises ArgumentError for a negative rate."""

    rate: float

    def __post_init__(self) -> None:
        require_number("Constant: rate", self.rate, least=0.0)

    def __call__(self, progress: Progress) -> Var:
        return progress.number(float(self.rate))


@dataclass(frozen=True)
class StepDecay(Schedule):
    """Step decay: ``rate gamma**floor(t / every)``, like `torch.optim.lr_scheduler.StepLR`.

    Raises ArgumentError for an argument out of range.
    """

    rate: float
    every: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        require_number("StepDecay: rate", self.rate, above=0.0)
        require_count("StepDecay: every", self.every)
        require_number("StepDecay: gamma", self.gamma, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        return float(self.rate) * float(self.gamma) ** floor(progress.step / float(self.every))


@dataclass(frozen=True)
class MultiStepDecay(Schedule):
    """Step decay at milestones: ``rate gamma**n``, where ``n`` is the number of `milestones` up to ``t``.

    Like `torch.optim.lr_scheduler.MultiStepLR`. Raises ArgumentError unless the milestones increase, and for an argument out of range.
    """

    rate: float
    milestones: Sequence[int]
    gamma: float = 0.1

    def __post_init__(self) -> None:
        require_number("MultiStepDecay: rate", self.rate, above=0.0)
        require_milestones("MultiStepDecay: milestones", self.milestones)
        require_number("MultiStepDecay: gamma", self.gamma, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        if not self.milestones:
            return progress.number(float(self.rate))
        passed = [cast(greater_equal(progress.step, progress.number(float(number))), dtype=DType.FLOAT64) for number in self.milestones]
        return float(self.rate) * float(self.gamma) ** sum_(passed)


@dataclass(frozen=True)
class ExponentialDecay(Schedule):
    """Exponential decay: ``rate gamma**(t / every)``, or with `staircase` ``rate gamma**floor(t / every)``.

    Like `torch.optim.lr_scheduler.ExponentialLR` if `every` is 1. Raises ArgumentError for an argument out of range.
    """

    rate: float
    gamma: float
    every: int = 1
    staircase: bool = False

    def __post_init__(self) -> None:
        require_number("ExponentialDecay: rate", self.rate, above=0.0)
        require_number("ExponentialDecay: gamma", self.gamma, above=0.0)
        require_count("ExponentialDecay: every", self.every)

    def __call__(self, progress: Progress) -> Var:
        return float(self.rate) * float(self.gamma) ** _periods(progress.step, self.every, self.staircase)


@dataclass(frozen=True)
class NaturalExponentialDecay(Schedule):
    """Natural exponential decay: ``rate exp(-decay t / every)``, or with `staircase` ``rate exp(-decay floor(t / every))``.

    Raises ArgumentError for an argument out of range.
    """

    rate: float
    decay: float
    every: int = 1
    staircase: bool = False

    def __post_init__(self) -> None:
        require_number("NaturalExponentialDecay: rate", self.rate, above=0.0)
        require_number("NaturalExponentialDecay: decay", self.decay, least=0.0)
        require_count("NaturalExponentialDecay: every", self.every)

    def __call__(self, progress: Progress) -> Var:
        return float(self.rate) * exp(-float(self.decay) * _periods(progress.step, self.every, self.staircase))


@dataclass(frozen=True)
class InverseTimeDecay(Schedule):
    """Inverse time decay: ``rate / (1 + decay t / every)``, or with `staircase` ``rate / (1 + decay floor(t / every))``.

    Raises ArgumentError for an argument out of range.
    """

    rate: float
    decay: float
    every: int = 1
    staircase: bool = False

    def __post_init__(self) -> None:
        require_number("InverseTimeDecay: rate", self.rate, above=0.0)
        require_number("InverseTimeDecay: decay", self.decay, least=0.0)
        require_count("InverseTimeDecay: every", self.every)

    def __call__(self, progress: Progress) -> Var:
        return float(self.rate) / (1.0 + float(self.decay) * _periods(progress.step, self.every, self.staircase))


@dataclass(frozen=True)
class PolynomialDecay(Schedule):
    """Polynomial decay: ``(rate - end) (1 - min(t, steps) / steps)**power + end``.

    With `cycle`, `steps` is replaced by ``steps max(1, ceil(t / steps))``, so that the rate rises again whenever it reaches the end. Like
    `torch.optim.lr_scheduler.PolynomialLR` if `end` is 0. Raises ArgumentError for an argument out of range.
    """

    rate: float
    steps: int
    end: float = 0.0
    power: float = 1.0
    cycle: bool = False

    def __post_init__(self) -> None:
        require_number("PolynomialDecay: rate", self.rate, above=0.0)
        require_count("PolynomialDecay: steps", self.steps)
        require_number("PolynomialDecay: end", self.end, least=0.0)
        require_number("PolynomialDecay: power", self.power, above=0.0)

    def __call__(self, progress: Progress) -> Var:
        step, steps = progress.step, progress.number(float(self.steps))
        whole = steps * maximum(ceil(step / steps), progress.number(1.0)) if self.cycle else steps
        done = minimum(step, whole) / whole
        return (float(self.rate) - float(self.end)) * (1.0 - done) ** float(self.power) + float(self.end)


@dataclass(frozen=True)
class LinearDecay(Schedule):
    """A linear change: ``rate (start_factor + (end_factor - start_factor) min(t, steps) / steps)``.

    Like `torch.optim.lr_scheduler.LinearLR`. Raises ArgumentError for an argument out of range.
    """

    rate: float
    steps: int
    start_factor: float = 1.0
    end_factor: float = 0.0

    def __post_init__(self) -> None:
        require_number("LinearDecay: rate", self.rate, above=0.0)
        require_count("LinearDecay: steps", self.steps)
        require_number("LinearDecay: start_factor", self.start_factor, least=0.0)
        require_number("LinearDecay: end_factor", self.end_factor, least=0.0)

    def __call__(self, progress: Progress) -> Var:
        done = minimum(progress.step, progress.number(float(self.steps))) / float(self.steps)
        return float(self.rate) * (float(self.start_factor) + (float(self.end_factor) - float(self.start_factor)) * done)


def _periods(step: Var, every: int, staircase: bool) -> Var:
    periods = step / float(every)
    return floor(periods) if staircase else periods

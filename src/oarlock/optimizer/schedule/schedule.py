"""Schedule: a learning rate that the program computes in each step from the number of updates."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from oarlock.errors import ArgumentError, DTypeError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.optimizer.step import as_own, new_state
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_number

__all__ = ["LearningRate", "Progress", "Schedule", "ScheduleLike", "is_schedule", "require_schedule"]


@dataclass(frozen=True)
class Progress:
    """The variables from which a schedule computes a rate."""

    main: Block
    step: Var
    """The number of previous updates: float64[], 0 in the first step."""
    cost: Var | None
    """The cost, float[]; None if only gradients were given."""
    name: str
    """The name of the optimizer in the program: `adam_0`."""
    written: dict[Var, Var]

    def number(self, value: float) -> Var:
        """Return `value` as a variable: float64[]."""
        return constant_like(value, self.step)

    def at(self, step: Var) -> "Progress":
        """Return the progress at another number of updates."""
        return replace(self, step=step)

    def state(self, name: str, initial: float) -> Var:
        """Declare state of the schedule, `adam_0.name`: float64[], initialized to `initial`."""
        return new_state(self.main, f"{self.name}.{name}", initial)

    def commit(self, var: Var, value: Var) -> None:
        """Set the value of the state `var` after the step to `value`."""
        self.written[var] = value

    def value_of(self, schedule: "ScheduleLike") -> Var:
        """Return the rate of `schedule`, which may be a number: float64[]. Raises ArgumentError, ShapeError or DTypeError if it is not a
        rate.
        """
        if isinstance(schedule, int | float):
            return full(shape=(), value=float(schedule), dtype=DType.FLOAT64)
        rate = schedule(self)
        if not isinstance(rate, Var):
            raise ArgumentError(f"a schedule must return a variable, float64[], not {describe_value(rate)}", location=here())
        if rate.shape != ():
            raise ShapeError(f"a schedule must return one number, not {rate.type_text}", location=here(), given=[rate.describe()])
        if not rate.dtype.is_floating:
            raise DTypeError(f"a schedule must return a float, not {rate.type_text}", location=here(), given=[rate.describe()])
        return rate if rate.dtype is DType.FLOAT64 else cast(rate, dtype=DType.FLOAT64)

    def rate(self, schedule: "ScheduleLike") -> Var:
        """Return the rate of `schedule` as the variable `adam_0.learning_rate`, which can be fetched."""
        rate = self.value_of(schedule)
        if rate.block is not self.main:
            raise ProgramError("the rate of a schedule must be computed in the main block", location=here(), given=[rate.describe()])
        rate = as_own(self.main, rate)
        self.main.rename(rate, f"{self.name}.learning_rate")
        return rate


class Schedule(ABC):
    """A learning rate that changes, as ops of the program: no Python runs between steps, and a saved run resumes it.

    A subclass writes the ops. Any function from `Progress` to a variable is a schedule too: ``SGD(lambda progress: 0.1 / (1.0 +
    progress.step))``.
    """

    @abstractmethod
    def __call__(self, progress: Progress) -> Var:
        """Append the ops that compute the rate of the step: float64[]."""


ScheduleLike: TypeAlias = Schedule | Callable[[Progress], Var] | float
"""A schedule, or a number for a constant one."""

LearningRate: TypeAlias = float | Var | Schedule | Callable[[Progress], Var]
"""A learning rate of an optimizer."""


def is_schedule(value: object) -> TypeGuard[Callable[[Progress], Var]]:
    return callable(value) and not isinstance(value, type | Var)


def require_schedule(what: str, value: object) -> None:
    """Raise ArgumentError unless `value` is a schedule or a valid rate."""
    if isinstance(value, int | float):
        require_number(what, value, least=0.0)
    elif not is_schedule(value):
        raise ArgumentError(f"{what} must be a schedule or a number, not {describe_value(value)}", location=here())

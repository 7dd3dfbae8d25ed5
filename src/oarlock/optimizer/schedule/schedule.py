"""Schedule: a learning rate that the program computes anew in each step, of how many updates there have been."""

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
    """The variables that a schedule computes a rate of."""

    main: Block
    step: Var
    """How many updates there have been before this one: float64[], 0 in the first step."""
    cost: Var | None
    """The cost that is minimized, float[]; None where gradients alone were given."""
    name: str
    """The name of the optimizer in the program: `adam_0`."""
    written: dict[Var, Var]

    def number(self, value: float) -> Var:
        """`value` as a variable: float64[]."""
        return constant_like(value, self.step)

    def at(self, step: Var) -> "Progress":
        """The same after another number of updates."""
        return replace(self, step=step)

    def state(self, name: str, initial: float) -> Var:
        """A number that the schedule keeps from step to step, as `adam_0.name`: float64[], `initial` at first."""
        return new_state(self.main, f"{self.name}.{name}", initial)

    def commit(self, var: Var, value: Var) -> None:
        """Make `value` what `var`, a state, holds after the step."""
        self.written[var] = value

    def value_of(self, schedule: "ScheduleLike") -> Var:
        """The rate by `schedule`, a number among them: float64[]. Raises ArgumentError, ShapeError or DTypeError for what is no rate."""
        if isinstance(schedule, int | float):
            return full(shape=(), value=float(schedule), dtype=DType.FLOAT64)
        rate = schedule(self)
        if not isinstance(rate, Var):
            raise ArgumentError(f"a schedule returns a variable, float64[], not {describe_value(rate)}", location=here())
        if rate.shape != ():
            raise ShapeError(f"a schedule returns one number, not {rate.type_text}", location=here(), given=[rate.describe()])
        if not rate.dtype.is_floating:
            raise DTypeError(f"a schedule returns a float, not {rate.type_text}", location=here(), given=[rate.describe()])
        return rate if rate.dtype is DType.FLOAT64 else cast(rate, dtype=DType.FLOAT64)

    def rate(self, schedule: "ScheduleLike") -> Var:
        """The rate by `schedule`, as the variable `adam_0.learning_rate`, by which it is fetched."""
        rate = self.value_of(schedule)
        if rate.block is not self.main:
            raise ProgramError("the rate that a schedule returns is computed in the main block", location=here(), given=[rate.describe()])
        rate = as_own(self.main, rate)
        self.main.rename(rate, f"{self.name}.learning_rate")
        return rate


class Schedule(ABC):
    """A learning rate that changes, as ops of the program: no call is made between steps, and a saved run goes on where it was.

    A subclass writes the ops. Any function from `Progress` to a variable is a schedule too:
    ``SGD(lambda progress: 0.1 / (1.0 + progress.step))``.
    """

    @abstractmethod
    def __call__(self, progress: Progress) -> Var:
        """Append what computes the rate of the step: float64[]."""


ScheduleLike: TypeAlias = Schedule | Callable[[Progress], Var] | float
"""A schedule, or a number for one that stays as it is."""

LearningRate: TypeAlias = float | Var | Schedule | Callable[[Progress], Var]
"""A learning rate as an optimizer takes it."""


def is_schedule(value: object) -> TypeGuard[Callable[[Progress], Var]]:
    return callable(value) and not isinstance(value, type | Var)


def require_schedule(what: str, value: object) -> None:
    """Raise ArgumentError for what is no schedule, and no number that a rate may be."""
    if isinstance(value, int | float):
        require_number(what, value, least=0.0)
    elif not is_schedule(value):
        raise ArgumentError(f"{what} is a schedule or a number, not {describe_value(value)}", location=here())

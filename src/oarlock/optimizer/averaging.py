"""Averages of parameters over the steps, as state of the program; they often predict better than the last parameters."""

from dataclasses import dataclass

from oarlock.errors import ScopeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, remainder, subtract
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_count, require_number
from oarlock.runtime.scope import Scope

__all__ = ["AVERAGE", "Average", "ExponentialAverage", "UniformAverage", "averages"]

AVERAGE = "AVERAGE"
"""Suffix of the average of a parameter: `fc_0.w@AVERAGE`."""


class Average:
    """A running average of a parameter: ``average' = average + weight (w' - average)``, with the weight of the step."""

    def weight(self, step: Step) -> Var:
        """Return the weight of the newest value: float64[]."""
        raise NotImplementedError

    def append(self, step: Step, parameter: Var) -> None:
        """Append the update of the average after the update of `parameter` in `step`."""
        following = step.written[parameter]
        average = step.state(parameter, AVERAGE)
        weight = cast(self.weight(step), dtype=parameter.dtype)
        step.commit(average, add(average, multiply(weight, subtract(following, average))))


@dataclass(frozen=True)
class ExponentialAverage(Average):
    """An exponential average: ``average' = decay average + (1 - decay) w'`` (Polyak and Juditsky, 1992; as in Szegedy et al., 2016).

    It starts as the parameter after the first update. Raises ArgumentError unless the decay is in [0, 1).
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        require_number("ExponentialAverage: decay", self.decay, least=0.0, below=1.0)

    def weight(self, step: Step) -> Var:
        later, first = (constant_like(value, step.learning_rate) for value in (1.0 - self.decay, 1.0))
        return where(equal(step.count, constant_like(1, step.count)), first, later)


@dataclass(frozen=True)
class UniformAverage(Average):
    """The mean of the parameter after every `every`th update, from update `start` on (stochastic weight averaging, Izmailov et al., 2018).

    Before `start` it equals the parameter. Raises ArgumentError unless both are integers from 1.
    """

    start: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        require_count("UniformAverage: start", self.start)
        require_count("UniformAverage: every", self.every)

    def weight(self, step: Step) -> Var:
        start, every, none = (constant_like(value, step.count) for value in (self.start, self.every, 0))
        since = subtract(step.count, start)
        counted = cast(since, dtype=DType.FLOAT64)
        one, nothing, stride = (constant_like(value, counted) for value in (1.0, 0.0, float(self.every)))
        mean = divide(one, add(divide(counted, stride), one))
        is_taken = equal(remainder(since, every), none)
        return where(greater_equal(since, none), where(is_taken, mean, nothing), one)


def averages(program: Program, scope: Scope) -> Scope:
    """Return a scope inside `scope` in which each averaged parameter has its average as value, under its own name.

    Prediction in it uses the averages, and ``ol.save_model(predict, ol.optimizer.averages(program, scope), path)`` saves them. The values
    are a snapshot; training continues in `scope`. Raises ScopeError if the program has no averages.
    """
    kept = {var.name: program.main.find_var(f"{var.name}@{AVERAGE}") for var in program.parameters()}
    found = {name: average.name for name, average in kept.items() if average is not None and average.persistable}
    if not found:
        raise ScopeError("this program has no averages of its parameters", location=here(), hint="pass average= to the optimizer")
    values = {name: scope[average] for name, average in found.items()}
    inside = scope.new_scope()
    for name, value in values.items():
        inside.set(name, value)
    return inside

"""The work of every optimizer: backward, then one update per parameter, all of it in the program."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError, DTypeError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER, next_name
from oarlock.ir.operation import Role
from oarlock.ir.var import Initializer, Var
from oarlock.old_names import OLD_ARGUMENTS, renamed
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add
from oarlock.passes.backward import append_backward, trained_by
from oarlock.registry.creator import require_open

__all__ = ["Optimizer", "Step"]


@dataclass(frozen=True)
class Step:
    """The variables that one call of `minimize` shares between its parameters."""

    main: Block
    learning_rate: Var
    count: Var
    """How many steps there will have been after this one: int64[]."""

    @property
    def rate(self) -> Var:
        """The learning rate by its old name, which warns."""
        return getattr(self, renamed("attribute of a step", "rate", OLD_ARGUMENTS, stacklevel=2))

    def state(self, parameter: Var, suffix: str) -> Var:
        """A persistable variable beside `parameter`, of its shape, that starts as zeros."""
        zeros = Initializer("constant", {"value": 0.0})
        return self.main.new_var(
            f"{parameter.name}@{suffix}", parameter.dtype, parameter.shape, persistable=True, stop_gradient=True, initializer=zeros
        )

    def commit(self, var: Var, value: Var) -> None:
        """Make `value` what `var` holds after the step."""
        self.main.rename(value, next_name(var.name))
        self.main.commit(var, value)


class Optimizer(ABC):
    """A rule that turns gradients into new parameters. Its state is variables of the program.

    The learning rate is a number above 0, or a variable, float[], that the program computes or is fed. Raises ArgumentError
    for another number, ShapeError or DTypeError for another variable.
    """

    def __init__(self, learning_rate: float | Var):
        if isinstance(learning_rate, Var):
            _require_rate(learning_rate)
        elif not learning_rate > 0:
            raise ArgumentError(f"a learning rate is above 0, not {learning_rate}")
        self.learning_rate = learning_rate if isinstance(learning_rate, Var) else float(learning_rate)

    @property
    def rate(self) -> float | Var:
        """The learning rate by its old name, which warns."""
        return getattr(self, renamed("attribute of an optimizer", "rate", OLD_ARGUMENTS, stacklevel=2))

    def minimize(self, cost: Var, parameters: Sequence[Var] | None = None) -> list[tuple[Var, Var]]:
        """Append to the program of `cost` its gradients and a step that lowers it; return (parameter, gradient) pairs.

        `parameters` are the trainable ones that `cost` depends on, unless given. The learning rate is a
        variable, `sgd_0.learning_rate` (`sgd_1.learning_rate` of a second SGD): float64[], which a caller may set between steps;
        none is declared where the rate is a variable already. Raises ProgramError, before the program is changed, for a parameter that a
        step updates already, for a rate of another program, where another program is open, or where there is nothing to update.
        """
        chosen = trained_by(cost) if parameters is None else list(parameters)
        if not chosen:
            raise ProgramError(f'"{cost.name}" depends on no trainable parameter, so there is nothing to update', location=here())
        _require_not_updated(cost.block.program.main, chosen)
        self._require_rate_in(cost.block.program.main)
        pairs = append_backward(cost, chosen)
        self.apply(pairs)
        return pairs

    def apply(self, pairs: Sequence[tuple[Var, Var]]) -> None:
        """Append a step of parameters whose gradients are there: the second half of `minimize`, which raises as that does."""
        if not pairs:
            raise ProgramError("there are no gradients, so there is nothing to update", location=here())
        require_open(pairs[0][0], "apply")
        main = pairs[0][0].block.program.main
        _require_not_updated(main, [parameter for parameter, _ in pairs])
        self._require_rate_in(main)
        with main, main.program.write_as(Role.UPDATE):
            step = Step(main, self._rate(main), self._count(main))
            for parameter, gradient in pairs:
                self.update(step, parameter, gradient)

    def _require_rate_in(self, main: Block) -> None:
        if isinstance(self.learning_rate, Var) and self.learning_rate.block is not main:
            raise ProgramError(
                f'the learning rate "{self.learning_rate.name}" is not a variable of the main block of this program',
                location=here(),
                given=[self.learning_rate.describe()],
            )

    def _rate(self, main: Block) -> Var:
        rate = self.learning_rate
        if isinstance(rate, Var):
            return rate if rate.dtype is DType.FLOAT64 else cast(rate, dtype=DType.FLOAT64)
        kind, number = type(self).__name__.lower(), 0
        while main.find_var(f"{kind}_{number}.learning_rate") is not None:
            number += 1
        name = f"{kind}_{number}.learning_rate"
        start = Initializer("constant", {"value": rate})
        return main.new_var(name, DType.FLOAT64, (), persistable=True, stop_gradient=True, initializer=start)

    def _count(self, main: Block) -> Var:
        """The step counter after this step; the first optimizer of a program sees to it that it counts."""
        found = main.find_var(next_name(COUNTER))
        if found is not None:
            return found
        counter = main.program.counter()
        count = add(counter, full(shape=(), value=1.0, dtype=DType.INT64))
        main.rename(count, next_name(COUNTER))
        main.commit(counter, count)
        return count

    @abstractmethod
    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        """Append the ops that give `parameter` and its state their next values, and commit these."""


def _require_rate(rate: Var) -> None:
    if rate.shape != ():
        raise ShapeError(f'the learning rate "{rate.name}" is {rate.type_text}, not one number', location=here(), given=[rate.describe()])
    if not rate.dtype.is_floating:
        raise DTypeError(f'the learning rate "{rate.name}" is {rate.type_text}, not a float', location=here(), given=[rate.describe()])


def _require_not_updated(main: Block, parameters: Sequence[Var]) -> None:
    updated = {var for op in main.tail for var in op.writes}
    for var in parameters:
        if var in updated:
            raise ProgramError(
                f'"{var.name}" is updated by an optimizer already',
                location=here(),
                given=[var.describe()],
                hint="minimize(cost, parameters=[...]) divides parameters between optimizers",
            )

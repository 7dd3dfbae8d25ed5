"""Step: the inputs of an optimizer's update of one parameter, and the values that it commits."""

from collections.abc import Callable
from dataclasses import dataclass, field

from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.names import next_name
from oarlock.ir.operation import Role
from oarlock.ir.sharding import Sharding
from oarlock.ir.size import Shape
from oarlock.ir.var import Initializer, Var
from oarlock.old_names import OLD_ARGUMENTS, renamed
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import assign, subtract
from oarlock.op.powers import power
from oarlock.op.update import sgd

__all__ = ["Step", "as_own", "commit_all", "new_state"]


@dataclass(frozen=True)
class Step:
    """The variables of one step for one parameter. `update` reads them and commits next values."""

    main: Block
    learning_rate: Var
    """The learning rate of this parameter in this step: float64[]."""
    count: Var
    """The number of updates including this one: int64[]."""
    weight_decay: float = 0.0
    """The decay that `update` must apply; 0 unless the optimizer sets `decays_weights`."""
    written: dict[Var, Var] = field(default_factory=dict)
    """The persistable variables committed so far, each with its next value."""
    shared: tuple[str, dict[str, Var]] = ("", {})
    """The optimizer's name in the program, and the next values of state shared by its parameters."""

    @property
    def rate(self) -> Var:
        """The learning rate, by its deprecated name; warns."""
        return getattr(self, renamed("attribute of a step", "rate", OLD_ARGUMENTS))

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        """Declare state of `parameter`, by default of its shape and dtype, with every element initialized to `initial`.

        It is at the place of the parameter and, if it has the shape of the parameter, divided among workers in the same way.
        """
        return new_state(
            self.main,
            f"{parameter.name}@{suffix}",
            initial,
            dtype=parameter.dtype if dtype is None else dtype,
            shape=parameter.shape if shape is None else shape,
            sharding=parameter.sharding if shape in (None, parameter.shape) else None,
            place=parameter.place,
        )

    def commit(self, var: Var, value: Var) -> None:
        """Set the value of `var` after the step to `value`."""
        self.written[var] = value

    def descend(self, parameter: Var, direction: Var, learning_rate: Var | None = None) -> None:
        """Commit ``parameter - learning_rate * direction``; `learning_rate`, float64[], defaults to that of the step."""
        self.commit(parameter, sgd(parameter, direction, self.learning_rate if learning_rate is None else learning_rate))

    def shared_state(self, name: str, initial: float, following: Callable[[Var], Var]) -> Var:
        """Return the next value of a number shared by all parameters, float64[]. `following` computes it from the last value, once."""
        optimizer, values = self.shared
        if name not in values:
            var = new_state(self.main, f"{optimizer}.{name}", initial)
            values[name] = following(var)
            self.commit(var, values[name])
        return values[name]

    def power(self, base: float) -> Var:
        """Return ``base ** count``: float64[]."""
        return power(full(shape=(), value=base, dtype=DType.FLOAT64), cast(self.count, dtype=DType.FLOAT64))

    def correction(self, beta: float) -> Var:
        """Return ``1 - beta ** count``, the bias correction of a running mean that started at 0: float64[]."""
        power = self.power(beta)
        return subtract(constant_like(1.0, power), power)


def new_state(
    main: Block,
    name: str,
    initial: float,
    *,
    dtype: DType = DType.FLOAT64,
    shape: Shape | None = (),
    sharding: Sharding | None = None,
    place: int = 0,
) -> Var:
    """Declare state of an optimizer, with every element initialized to `initial`."""
    start = Initializer("constant", {"value": float(initial)})
    return main.new_var(name, dtype, shape, persistable=True, stop_gradient=True, initializer=start, sharding=sharding, place=place)


def commit_all(main: Block, written: dict[Var, Var]) -> None:
    """Commit each value under the name of a next value."""
    for var, value in written.items():
        value = as_own(main, value)
        main.rename(value, next_name(var.name))
        main.commit(var, value)


def as_own(main: Block, value: Var) -> Var:
    """Return `value` as a variable that can be renamed: itself if an update has just computed it, else a copy."""
    is_own = value.op is not None and value.op.role is Role.UPDATE and value.block is main and "@" not in value.name
    return value if is_own else assign(value)

"""The base class of optimizers: it appends the gradients and one update per parameter to the program."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from oarlock.errors import ArgumentError, DTypeError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here, warn_here
from oarlock.ir.names import COUNTER, next_name
from oarlock.ir.operation import Role
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import restored_on_error, undone_on_error
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.update_settings import UpdateSettings
from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, renamed
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.row_gradients import as_table
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.magnitude import sign
from oarlock.op.update import sgd
from oarlock.optimizer.accumulation import Accumulation
from oarlock.optimizer.averaging import Average
from oarlock.optimizer.clipping import Clip, clip_by_settings, clipped
from oarlock.optimizer.converted_step import PartStep, WideStep, is_half
from oarlock.optimizer.row_step import Gradient, Gradients, RowStep, as_tables, coalesced
from oarlock.optimizer.schedule.schedule import LearningRate, Progress, is_schedule
from oarlock.optimizer.step import Step, commit_all, new_state
from oarlock.passes.backward import append_backward, require_variables, trained_by
from oarlock.registry.creator import describe_value, require_open
from oarlock.registry.range_check import require_count, require_number

__all__ = ["Optimizer", "Options"]


class Options(TypedDict, total=False):
    """The keywords common to all optimizers."""

    weight_decay: float
    decoupled_weight_decay: bool
    l1: float
    clip: Clip | None
    accumulate: int
    average: Average | None
    lazy: bool


class Optimizer(ABC):
    """A rule that updates parameters by their gradients. Its state is variables of the program.

    `learning_rate` is a positive number, a schedule computed by the program (`ol.optimizer.schedule`), or a variable, float[], that is
    computed or fed. Every optimizer also accepts these keywords:

    - `weight_decay`: adds ``weight_decay * w`` to the gradient, the derivative of ``weight_decay / 2 * sum(w**2)``; with
      `decoupled_weight_decay`, ``learning_rate * weight_decay * w`` is subtracted from the parameter instead (Loshchilov and Hutter, 2019).
    - `l1`: adds ``l1 * sign(w)`` to the gradient, the derivative of ``l1 * sum(abs(w))``.
    - `clip`: gradient clipping, such as ``ClipByGlobalNorm(1.0)``, or a function from pairs to pairs.
    - `accumulate`: the number of steps per update, which uses the mean of their gradients. The other steps change no parameter. Gradients
      left at the end of a run are applied by `ol.train`, or by `ol.optimizer.apply_accumulated` after a custom loop.
    - `average`: a running average of each parameter: `ExponentialAverage`, `UniformAverage`.
    - `lazy`: for a table with a `RowGradient`, as of ``ol.layer.embedding(..., sparse=True)``, update and decay only the rows that were
      looked up; the other rows and their state do not change. Otherwise such a gradient becomes dense, unless rows without a gradient stay
      unchanged anyway, as with SGD and Adagrad without decay.

    `update_settings` of a parameter override these. Raises ArgumentError for an argument out of range and for an unknown keyword;
    ShapeError or DTypeError for a learning rate variable of another type.
    """

    decays_weights = False
    """Whether `update` itself applies the decoupled weight decay in `step.weight_decay`, instead of this class."""
    decoupled_weight_decay = False
    rests_without_gradient = False
    """Whether an element with a zero gradient keeps its value and its state."""
    is_elementwise = True
    """Whether `update` is elementwise in the gradient and the state, which `lazy` requires."""

    widens_halves = True
    """Whether `update` receives float32 for parameters in half precision; False if its kernels convert themselves."""

    def __init__(self, learning_rate: LearningRate, **options: Unpack[Options]):
        if isinstance(learning_rate, Var):
            _require_rate(learning_rate)
        elif not is_schedule(learning_rate):
            learning_rate = _rate_number(learning_rate)
        given: dict[str, Any] = dict(options)
        self.learning_rate = learning_rate
        self.weight_decay = require_number("weight_decay", given.get("weight_decay", 0.0), least=0.0)
        self.decoupled_weight_decay = bool(given.get("decoupled_weight_decay", self.decoupled_weight_decay))
        self.l1 = require_number("l1", given.get("l1", 0.0), least=0.0)
        self.clip = given.get("clip")
        if self.clip is not None and not callable(self.clip):
            raise ArgumentError(
                f"clip must be a function of pairs, such as ol.optimizer.ClipByGlobalNorm(1.0), not {describe_value(self.clip)}",
                location=here(),
            )
        self.accumulate = require_count("accumulate", given.get("accumulate", 1))
        self.average: Average | None = given.get("average")
        if self.average is not None and not isinstance(self.average, Average):
            raise ArgumentError(
                f"average must be an average, such as ol.optimizer.ExponentialAverage(0.999), not {describe_value(self.average)}",
                location=here(),
            )
        self.lazy = bool(given.get("lazy", False))
        if self.lazy and not self.is_elementwise:
            kind = type(self).__name__
            raise ArgumentError(f"{kind}: its updates depend on all rows of a table, so lazy cannot be used", location=here())

    @property
    def rate(self) -> LearningRate:
        """The learning rate, by its deprecated name; warns."""
        return getattr(self, renamed("attribute of an optimizer", "rate", OLD_ARGUMENTS))

    def minimize(self, cost: Var, parameters: Sequence[Var] | None = None) -> list[tuple[Var, Gradient]]:
        """Append the gradients of `cost` and a step that minimizes it to its program; return (parameter, gradient) pairs.

        `parameters` defaults to the trainable parameters that `cost` depends on. A gradient is a variable, or a `RowGradient` if a lookup
        requests rows and nothing else reads the table. The learning rate is a variable, `sgd_0.learning_rate` (`sgd_1.learning_rate` for a
        second SGD): float64[]. It can be set between steps, or fetched if a schedule computes it; if the rate is a variable already, none
        is declared.

        Raises, without changing the program, ArgumentError for an argument that is not a variable, and ProgramError if a parameter is
        already updated by a step, if the rate belongs to another program, if another program is open, or if there is nothing to update.
        """
        (cost,) = require_variables("the cost", [cost])
        chosen = trained_by(cost) if parameters is None else list(dict.fromkeys(require_variables("parameters", parameters)))
        if not chosen and parameters is not None:
            raise ProgramError("parameters is empty: there is nothing to update", location=here())
        if not chosen:
            raise ProgramError(f'"{cost.name}" depends on no trainable parameter: there is nothing to update', location=here())
        _require_not_updated(cost.block.program.main, chosen)
        self._require_usable(cost.block.program.main, chosen)
        with restored_on_error(cost.block.program):
            pairs = self._gradients(cost, chosen)
            self.apply(pairs, cost)
        return pairs

    def _gradients(self, cost: Var, parameters: Sequence[Var]) -> list[tuple[Var, Gradient]]:
        """Append the gradients of `cost` with respect to `parameters`."""
        return append_backward(cost, parameters, sparse=True)

    def apply(self, pairs: Gradients, cost: Var | None = None) -> None:
        """Append a step for parameters with existing gradients: the second half of `minimize`, with the same errors.

        `cost`, float[], is required by schedules that depend on it.
        """
        pairs = _require_pairs(pairs)
        if not pairs:
            raise ProgramError("there are no gradients: there is nothing to update", location=here())
        require_open(pairs[0][0], "apply")
        main = pairs[0][0].block.program.main
        _require_not_updated(main, [parameter for parameter, _ in pairs])
        self._require_usable(main, [parameter for parameter, _ in pairs])
        with undone_on_error(main.program), main, main.program.write_as(Role.UPDATE):
            self._append(main, pairs, cost)

    def _append(self, main: Block, pairs: Gradients, cost: Var | None) -> None:
        """Append the updates of `pairs` to a program that is open for updates."""
        pairs = [(parameter, self._as_taken(parameter, gradient)) for parameter, gradient in pairs]
        written: dict[Var, Var] = {}
        name = self._name(main)
        accumulation = Accumulation.new(main, name, self.accumulate) if self.accumulate > 1 else None
        rate = self._rate(main, name, cost, written, accumulation)
        count = count_steps(main)
        if accumulation is not None:
            written |= accumulation.append(
                as_tables(pairs), rate, lambda means, rate, updates: self._update_all(main, name, means, rate, updates)
            )
        else:
            written |= self._update_all(main, name, pairs, rate, count)
        commit_all(main, written)

    def _update_all(self, main: Block, name: str, pairs: Gradients, rate: Var, count: Var) -> dict[Var, Var]:
        """Append the update of each parameter; return the values to commit."""
        pairs = [(parameter, clip_by_settings(gradient, parameter.update_settings)) for parameter, gradient in pairs]
        if self.clip is not None:
            pairs = clipped(self.clip, pairs)
        step = Step(main, rate, count, shared=(name, {}))
        for parameter, gradient in pairs:
            self._update_one(step, parameter, gradient)
        return step.written

    def _update_one(self, step: Step, parameter: Var, gradient: Gradient) -> None:
        settings = parameter.update_settings
        if settings.rate_factor != 1.0:
            factor = constant_like(settings.rate_factor, step.learning_rate)
            step = replace(step, learning_rate=multiply(step.learning_rate, factor))
        if isinstance(gradient, Var):
            self._update_decayed(step, parameter, gradient, settings)
        elif self._decays(parameter):
            self._update_part(step, parameter, gradient)
        else:
            self.update_rows(step, parameter, gradient)
        if self.average is not None and parameter in step.written:
            self.average.append(step, parameter)

    def _update_decayed(self, step: Step, parameter: Var, gradient: Var, settings: UpdateSettings) -> None:
        """Append an update with penalties and weight decay, for a parameter or for some of its rows."""
        decay = self.weight_decay if settings.weight_decay is None else settings.weight_decay
        decoupled = decay if self.decoupled_weight_decay else 0.0
        for share in (settings.l2, 0.0 if decoupled else decay):
            if share:
                gradient = add(gradient, multiply(parameter, constant_like(share, parameter)))
        for share in (settings.l1, self.l1):
            if share:
                gradient = add(gradient, multiply(sign(parameter), constant_like(share, parameter)))
        self._update_real(replace(step, weight_decay=decoupled if self.decays_weights else 0.0), parameter, gradient)
        if decoupled and not self.decays_weights and parameter in step.written:
            taken = multiply(step.learning_rate, constant_like(decoupled, step.learning_rate))
            following = step.written[parameter]
            if parameter.dtype.is_complex:
                step.written[parameter] = subtract(following, multiply(parameter, cast(taken, dtype=parameter.dtype)))
            else:
                step.written[parameter] = sgd(following, parameter, taken)

    def _update_real(self, step: Step, parameter: Var, gradient: Var) -> None:
        """Call `update` with real and imaginary parts of complex numbers, and with float32 for half precision if required."""
        if parameter.dtype.is_complex:
            parts = PartStep.of(step)
            self.update(parts, parts.parts(parameter), parts.parts(gradient))
        elif self.widens_halves and is_half(parameter):
            wide = WideStep.of(step)
            self.update(wide, wide.widened(parameter), wide.widened(gradient))
        else:
            self.update(step, parameter, gradient)

    def _update_part(self, step: Step, parameter: Var, gradient: RowGradient) -> None:
        """Update the rows of a gradient as if they were a parameter, and write them back."""
        gradient = coalesced(gradient)
        rows = RowStep.of(step, gradient)
        self._update_decayed(rows, rows.take(parameter), gradient.values, parameter.update_settings)
        step.written.update(rows.put_back())

    def _as_taken(self, parameter: Var, gradient: Gradient) -> Gradient:
        """Return the gradient in the form that this optimizer uses: by rows, or as a table, with a warning that says why."""
        if isinstance(gradient, Var):
            return gradient
        kind = type(self).__name__
        if self.accumulate > 1:
            reason = f"{kind} accumulates the gradients of {self.accumulate} steps"
        elif self.lazy or (self.rests_without_gradient and not self._decays(parameter)):
            return gradient
        else:
            advice = "; pass lazy=True to update only the rows that were looked up" if self.is_elementwise else ""
            reason = f"{kind} {'decays' if self.rests_without_gradient else 'changes'} every row in each step{advice}"
        warn_here(f'the gradient of "{parameter.name}" is dense although a lookup requests rows: {reason}')
        return as_table(gradient)

    def _decays(self, parameter: Var) -> bool:
        settings = parameter.update_settings
        decay = self.weight_decay if settings.weight_decay is None else settings.weight_decay
        return bool(decay or settings.l2 or settings.l1 or self.l1)

    @abstractmethod
    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        """Append the ops that compute the next values of `parameter` and its state, and commit them."""

    def update_rows(self, step: Step, parameter: Var, gradient: RowGradient) -> None:
        """Append the update of the rows of `parameter` that have a gradient. By default, calls `update` with these rows."""
        self._update_part(step, parameter, gradient)

    # Learning rate and step count

    def _require_usable(self, main: Block, parameters: Sequence[Var]) -> None:
        """Raise errors before the program of `main` is changed; subclasses also check `parameters`."""
        if isinstance(self.learning_rate, Var) and self.learning_rate.block is not main:
            raise ProgramError(
                f'the learning rate "{self.learning_rate.name}" is not a variable of the main block of this program',
                location=here(),
                given=[self.learning_rate.describe()],
            )

    def _name(self, main: Block) -> str:
        """Return the name of this optimizer in the program, a prefix of its state: `adam_0`, `adam_1`."""
        kind, number = type(self).__name__.lower(), 0
        kept = {var.name.partition(".")[0] for var in main.vars.values() if var.persistable}
        while f"{kind}_{number}" in kept or main.find_var(f"{kind}_{number}.learning_rate") is not None:
            number += 1
        return f"{kind}_{number}"

    def _rate(self, main: Block, name: str, cost: Var | None, written: dict[Var, Var], accumulation: Accumulation | None = None) -> Var:
        rate = self.learning_rate
        if isinstance(rate, Var):
            return rate if rate.dtype is DType.FLOAT64 else cast(rate, dtype=DType.FLOAT64)
        if isinstance(rate, float):
            return new_state(main, f"{name}.learning_rate", rate)
        steps = main.program.counter() if accumulation is None else accumulation.updates
        return Progress(main, cast(steps, dtype=DType.FLOAT64), cost, name, written).rate(rate)


def count_steps(main: Block) -> Var:
    """Return the step counter after this step; the first optimizer of a program appends the increment."""
    found = main.find_var(next_name(COUNTER))
    if found is not None:
        return found
    counter = main.program.counter()
    count = add(counter, full(shape=(), value=1.0, dtype=DType.INT64))
    commit_all(main, {counter: count})
    return count


def _rate_number(rate: object) -> float:
    number = as_python(rate)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 < number < math.inf:
        raise ArgumentError(f"a learning rate must be a positive finite number, not {rate!r:.60}", location=here())
    return float(number)


def _require_rate(rate: Var) -> None:
    if rate.shape != ():
        raise ShapeError(f'the learning rate "{rate.name}" is {rate.type_text}, not one number', location=here(), given=[rate.describe()])
    if not rate.dtype.is_floating:
        raise DTypeError(f'the learning rate "{rate.name}" is {rate.type_text}, not a float', location=here(), given=[rate.describe()])


def _require_pairs(given: object) -> list[tuple[Var, Gradient]]:
    """Return the pairs of parameters and gradients. Raises ArgumentError for anything else."""
    pairs: list[tuple[Var, Gradient]] = []
    for pair in given if isinstance(given, Sequence) else [given]:
        parameter, gradient = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, None)
        if not isinstance(parameter, Var) or not isinstance(gradient, Var | RowGradient):
            raise ArgumentError(
                f"apply: expected pairs of a parameter and its gradient, not {describe_value(pair)}",
                location=here(),
                hint="pass the result of ol.append_backward(cost)",
            )
        pairs.append((parameter, gradient))
    return pairs


def _require_not_updated(main: Block, parameters: Sequence[Var]) -> None:
    updated = {var for op in main.tail for var in op.writes}
    for var in parameters:
        if var in updated:
            raise ProgramError(
                f'"{var.name}" is already updated by an optimizer',
                location=here(),
                given=[var.describe()],
                hint="divide the parameters between optimizers: minimize(cost, parameters=[...])",
            )

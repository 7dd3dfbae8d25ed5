"""L-BFGS: several evaluations of the cost per step, in a loop of the program."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from oarlock.errors import DTypeError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.size import names_in
from oarlock.ir.substitution import rename_sizes
from oarlock.ir.traversal import inner_blocks, needed_ops
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import rnn
from oarlock.layer.control.switch import cond
from oarlock.layer.control.while_loop import while_loop
from oarlock.op.choice import minimum, where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import assign, neg
from oarlock.op.extremes import amax
from oarlock.op.logical import logical_and, logical_not
from oarlock.op.magnitude import abs_
from oarlock.op.manipulation import concat, reshape, slice_
from oarlock.op.matrix import dot
from oarlock.op.reduction import reduce_sum
from oarlock.optimizer.averaging import Average
from oarlock.optimizer.clipping import Pairs
from oarlock.optimizer.line_search import Point, search_line
from oarlock.optimizer.optimizer import Optimizer, count_steps
from oarlock.optimizer.row_step import Gradients, as_tables
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step, commit_all, new_state
from oarlock.passes.recomputation.copies import copy_with_blocks
from oarlock.registry.range_check import require_choice, require_count, require_number

__all__ = ["LBFGS", "Evaluation"]


class Evaluation:
    """The ops that compute `targets` of the main block from `parameters`, to be written again elsewhere.

    Values that do not depend on parameters, such as input batches, are reused. Random ops draw the same numbers again.
    """

    def __init__(self, main: Block, targets: Sequence[Var], parameters: Sequence[Var]):
        self.targets = list(targets)
        dependent = set(parameters)
        for op in main.ops:
            if not op.is_commit and any(var in dependent for var in op.reads):
                dependent.update(op.writes)
        needed = needed_ops([op for op in main.ops if not op.is_commit], targets)
        self.ops = [op for op in needed if any(var in dependent for var in op.reads)]
        known = _names(var for var in main.vars.values() if var not in dependent)
        inside = [var for op in self.ops for body in op.blocks for block in inner_blocks(body) for var in block.vars.values()]
        self.sizes = _names([*(var for op in self.ops for var in op.writes), *inside]) - known
        """The names of the sizes that these ops and their blocks create; each copy of an op creates its own."""

    def append(self, values: Mapping[Var, Var]) -> list[Var]:
        """Append the ops to the open, empty block, reading `values` instead of parameters; return the targets there."""
        into = current_block()
        found = dict(values)

        def read(var: Var) -> Var:
            return found.get(var, var)

        for op in self.ops:
            made, results = copy_with_blocks(op, into, read)
            into.ops.append(made)
            found.update(results)
        rename_sizes(into, {name: into.program.unique(name) for name in sorted(self.sizes)})
        into.program.changed()
        return [read(target) for target in self.targets]


def _names(vars: Iterable[Var]) -> set[str]:
    return {name for var in vars for size in (*(var.shape or ()), var.row_splits_of or 1) for name in names_in(size)}


_LEAST_CURVATURE = 1e-10  # minimum for a step to enter the history, as in PyTorch


@dataclass(frozen=True)
class _Memory:
    """The known curvature: the last steps [h N], the changes of the gradient [h N], the inverses of their products [h], and a scale.

    The newest is the last row. Unfilled rows are zeros and have no effect.
    """

    steps: Var
    changes: Var
    inverses: Var
    scale: Var

    def with_last(self, step: Var, change: Var) -> "_Memory":
        """Return the memory with one more row, dropping the oldest, if the curvature along it is positive."""
        curvature = dot(change, step)
        is_kept = curvature > _LEAST_CURVATURE

        def moved(rows: Var, row: Var) -> Var:
            last = reshape(row, shape=(1, *(row.shape or ())))
            return where(is_kept, concat([slice_(rows, start=1), last], axis=0), rows)

        return _Memory(
            moved(self.steps, step),
            moved(self.changes, change),
            moved(self.inverses, 1.0 / curvature),
            where(is_kept, curvature / dot(change, change), self.scale),
        )

    def direction(self, gradient: Var) -> Var:
        """Return the negative gradient multiplied by the approximate inverse Hessian (Nocedal, 1980, two-loop recursion)."""
        uphill = neg(gradient)
        back = rnn(reverse=True)
        with back.step():
            step, change, inverse = (back.step_input(rows) for rows in (self.steps, self.changes, self.inverses))
            memory = back.memory(init=uphill)
            q = back.previous_memory(memory)
            share = dot(step, q) * inverse
            back.update_memory(memory, q - share * change)
            back.output(share)
        shares = back()
        assert isinstance(shares, Var)
        scaled = back.final_memory(memory) * self.scale
        forth = rnn()
        with forth.step():
            step, change, inverse = (forth.step_input(rows) for rows in (self.steps, self.changes, self.inverses))
            share, memory = forth.step_input(shares), forth.memory(init=scaled)
            r = forth.previous_memory(memory)
            forth.update_memory(memory, r + step * (share - dot(change, r) * inverse))
        forth()
        return forth.final_memory(memory)


class LBFGS(Optimizer):
    """The L-BFGS optimizer: several quasi-Newton steps per minibatch (Nocedal, 1980; Liu and Nocedal, 1989, algorithm 2.1).

    Each iteration moves the parameters by ``learning_rate d``, with ``d = -H dw`` and ``H`` an approximation of the inverse Hessian, and
    re-evaluates the cost and its gradients on the same minibatch. A step ends after `iterations` iterations or `evaluations` evaluations,
    if no element of the gradient exceeds `gradient_tolerance`, or if the parameters, the cost or the slope along ``d`` change by at most
    `change_tolerance`. ``H`` is computed from the last `history` steps and changes of the gradient, which are state of the program. The
    very first step has length ``min(1, 1 / sum(abs(dw)))``. With `line_search` "strong_wolfe", the rate is only the initial length of a
    line search, which also evaluates the cost. It follows `torch.optim.LBFGS`.

    It suits smooth costs with few parameters and full batches. Of the common optimizer keywords it only accepts `average`, because the
    others change gradients but not the cost. Raises ArgumentError for an argument out of range, DTypeError for parameters of several dtypes
    or in half precision, ProgramError if there is no cost to evaluate or a parameter has its own update settings.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 1.0,
        *,
        iterations: int = 20,
        evaluations: int | None = None,
        gradient_tolerance: float = 1e-7,
        change_tolerance: float = 1e-9,
        history: int = 10,
        line_search: str | None = None,
        average: Average | None = None,
    ):
        super().__init__(learning_rate, average=average)
        self.iterations = require_count("LBFGS: iterations", iterations)
        self.evaluations = self.iterations * 5 // 4 if evaluations is None else require_count("LBFGS: evaluations", evaluations)
        self.gradient_tolerance = require_number("LBFGS: gradient_tolerance", gradient_tolerance, least=0.0)
        self.change_tolerance = require_number("LBFGS: change_tolerance", change_tolerance, least=0.0)
        self.history = require_count("LBFGS: history", history)
        self.line_search = line_search if line_search is None else require_choice("LBFGS: line_search", line_search, ("strong_wolfe",))

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        raise NotImplementedError  # all parameters are updated together

    def _require_usable(self, main: Block, parameters: Sequence[Var]) -> None:
        super()._require_usable(main, parameters)
        for parameter in parameters:
            if parameter.dtype is not parameters[0].dtype or parameter.dtype.itemsize < 4:
                raise DTypeError(
                    "LBFGS: the parameters must be all float32 or all float64",
                    location=here(),
                    given=[parameters[0].describe(), parameter.describe()],
                )
            if parameter.update_settings.stated:
                raise ProgramError(
                    f'LBFGS: "{parameter.name}" has its own update settings, but LBFGS updates all parameters together',
                    location=here(),
                    given=[parameter.describe()],
                )

    def _append(self, main: Block, pairs: Gradients, cost: Var | None) -> None:
        pairs = as_tables(pairs)
        if cost is None:
            raise ProgramError("LBFGS: there is no cost to evaluate", location=here(), hint="call minimize(cost) or apply(pairs, cost)")
        written: dict[Var, Var] = {}
        name = self._name(main)
        rate = self._rate(main, name, cost, written)
        updates = count_steps(main)
        parameters = [parameter for parameter, _ in pairs]
        evaluation = Evaluation(main, [cost, *(gradient for _, gradient in pairs)], parameters)
        last, states = self._loop(main, name, pairs, cost, cast(rate, dtype=parameters[0].dtype), evaluation)
        step = Step(main, rate, updates, written=written)
        for parameter, value in _separate(last, parameters).items():
            step.commit(parameter, value)
            if self.average is not None:
                self.average.append(step, parameter)
        commit_all(main, written | states)

    def _loop(self, main: Block, name: str, pairs: Pairs, cost: Var, rate: Var, evaluation: Evaluation) -> tuple[Var, dict[Var, Var]]:
        """Append the loop; return all parameters after it, [N], and the state for the next step."""
        parameters, dtype = [parameter for parameter, _ in pairs], pairs[0][0].dtype
        count = sum(prod(map(int, parameter.shape or ())) for parameter in parameters)

        def state(suffix: str, *shape: int, initial: float = 0.0) -> Var:
            return new_state(main, f"{name}.{suffix}", initial, dtype=dtype, shape=shape)

        memory = _Memory(
            state("steps", self.history, count),
            state("changes", self.history, count),
            state("inverses", self.history),
            state("scale", initial=1.0),
        )
        before, direction, length = state("gradient", count), state("direction", count), state("length")
        trips = new_state(main, f"{name}.trips", 0.0, dtype=DType.INT64)
        x, gradient, loss = _concatenate(parameters), _concatenate([gradient for _, gradient in pairs]), assign(_as(cost, dtype))
        trip, evaluated = constant_like(0, trips), constant_like(1, trips)

        loop = while_loop(logical_not(_largest(gradient) <= self.gradient_tolerance), max_trips=self.iterations)
        with loop.block():
            following = memory.with_last(direction * length, gradient - before)
            descent = following.direction(gradient)
            is_first = equal(trips, constant_like(0, trips))
            steep = reduce_sum(abs_(gradient))
            pace = where(is_first, minimum(1.0 / steep, constant_like(1.0, steep)), constant_like(1.0, steep)) * rate
            slope = dot(gradient, descent)
            moves = logical_not(slope > -self.change_tolerance)
            continues = logical_and(moves, trip + 1 < self.iterations)

            def evaluate(length: Var) -> tuple[Var, Var]:
                found, *gradients = evaluation.append(_separate(x + length * descent, parameters))
                return _as(found, dtype), _concatenate(gradients)

            if self.line_search is None:
                values = cond(continues, lambda: evaluate(pace), lambda: (loss, gradient))
                assert isinstance(values, tuple)
                next_loss, next_gradient = values
                next_evaluated = where(continues, evaluated + 1, evaluated)
            else:
                start = Point(constant_like(0.0, pace), loss, gradient, slope)
                most, tolerance = self.evaluations - evaluated, self.change_tolerance
                found, count = search_line(evaluate, start, descent, pace, most=most, tolerance=tolerance, when=moves)
                pace = where(moves, found.length, pace)
                next_loss, next_gradient, next_evaluated = found.cost, found.gradient, evaluated + count
            moved = where(moves, x + pace * descent, x)
            for is_over in (
                next_evaluated >= self.evaluations,
                _largest(next_gradient) <= self.gradient_tolerance,
                _largest(descent * pace) <= self.change_tolerance,
                abs_(next_loss - loss) < self.change_tolerance,
            ):
                continues = logical_and(continues, logical_not(is_over))
            carried = {
                x: moved,
                gradient: next_gradient,
                loss: next_loss,
                trip: trip + 1,
                evaluated: next_evaluated,
                memory.steps: following.steps,
                memory.changes: following.changes,
                memory.inverses: following.inverses,
                memory.scale: following.scale,
                before: assign(gradient),
                direction: descent,
                length: pace,
                trips: trips + 1,
            }
            for var, value in carried.items():
                loop.carry(var, value)
            loop.update_condition(continues)
        results = loop()
        assert isinstance(results, tuple)
        last = dict(zip(carried, results, strict=True))
        return last[x], {var: value for var, value in last.items() if var.persistable}


def _as(value: Var, dtype: DType) -> Var:
    return value if value.dtype is dtype else cast(value, dtype=dtype)


def _concatenate(vars: Sequence[Var]) -> Var:
    """Concatenate all elements: T[N]."""
    return concat([reshape(var, shape=(-1,)) for var in vars], axis=0)


def _separate(joined: Var, likes: Sequence[Var]) -> dict[Var, Var]:
    """Split a concatenation into variables with the shapes of `likes`, the inverse of `_concatenate`."""
    parted: dict[Var, Var] = {}
    start = 0
    for like in likes:
        shape = tuple(map(int, like.shape or ()))
        stop = start + prod(shape)
        parted[like] = reshape(slice_(joined, start=start, stop=stop), shape=shape)
        start = stop
    return parted


def _largest(x: Var) -> Var:
    return amax(abs_(x))

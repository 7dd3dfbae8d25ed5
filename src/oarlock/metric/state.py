"""State of metrics: variables of the program that are summed over batches, and their reset."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import may_be
from oarlock.ir.size import Shape
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var
from oarlock.layer.initializer import constant
from oarlock.layer.parameter import layer_name, new_state, output_name
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.elementwise import add, divide
from oarlock.registry.creator import block_for
from oarlock.runtime.initialization import init
from oarlock.runtime.scope import Scope

__all__ = ["State", "can_be_equal", "counted_by", "measuring", "ratio", "reset"]


class State:
    """The variables of one metric, `<name>.<part>`: initially zeros, increased by each batch."""

    def __init__(self, kind: str, name: str | None, given: Sequence[Var]):
        main = block_for(given, f"metric.{kind}")
        if main is not main.program.main:
            raise ProgramError(
                f"metric.{kind}: its state cannot be updated in {main.path}",
                location=here(),
                contract="a step writes persistable variables of the main block only, after every other op",
                given=[given[0].describe()],
                hint="return the values from the block and measure them after it",
            )
        self.main = main
        self.name = layer_name(main.program, name, kind)
        taken = [var for var in main.vars.values() if var.persistable and var.name.startswith(f"{self.name}.")]
        if taken:
            raise ProgramError(
                f'metric.{kind}: "{taken[0].name}" is already declared, and the state of a metric cannot be shared',
                location=here(),
                given=[taken[0].describe()],
                hint="use another name",
            )

    def add(self, part: str, amount: Var) -> Var:
        """Return the sum of `<name>.<part>` and `amount`, whose sizes must be numbers, and commit it."""
        sizes = tuple(size for size in amount.shape or () if isinstance(size, int))
        assert sizes == amount.shape, amount.describe()
        before = new_state(self.main, f"{self.name}.{part}", sizes, amount.dtype, constant(0.0))
        after = add(before, amount)
        self.main.rename(after, next_name(before.name))
        self.main.commit(before, after, role=Role.MEASURE)
        return after

    def out(self, value: Var) -> Var:
        """Return `value` under the name of the metric."""
        self.main.rename(value, output_name(self.main.program, self.name))
        return value


def can_be_equal(left: Shape | None, right: Shape | None) -> bool:
    """Return whether two shapes can be equal."""
    return left is None or right is None or (len(left) == len(right) and all(map(may_be, left, right)))


@contextmanager
def measuring(kind: str, name: str | None, *given: Var) -> Iterator[State]:
    """Open the state of a metric of `given` while its ops are written; they are removed on an error."""
    with undone_on_error(given[0].block.program):
        yield State(kind, name, given)


def ratio(part: Var, whole: Var) -> Var:
    """Return ``part / whole``, or 0 if ``whole`` is 0."""
    none = equal(whole, constant_like(0.0, whole))
    return where(none, constant_like(0.0, whole), divide(part, where(none, constant_like(1.0, whole), whole)))


def _counting_ops(program: Program) -> list[Op]:
    """Return the commits of metric state."""
    return [op for op in program.main.tail if op.role is Role.MEASURE]


def counted_by(program: Program, values: Iterable[Var]) -> list[Var]:
    """Return the metric state that `values` depend on, in order of declaration."""
    needed = set(needed_ops(program.main.ops, values))
    return [op.writes[0] for op in _counting_ops(program) if op.reads[0].op in needed]


def reset(metrics: Program | Var | Sequence[Var], scope: Scope) -> None:
    """Reset metrics in `scope` to their initial state: all metrics of a program, or those that the given values depend on.

    Raises ArgumentError if there are no metrics among them, and the errors of `ol.init`.
    """
    values = [] if isinstance(metrics, Program) else [metrics] if isinstance(metrics, Var) else list(metrics)
    if not all(isinstance(value, Var) for value in values) or (not values and not isinstance(metrics, Program)):
        raise ArgumentError(f"reset: expected a program or values of metrics, not {metrics!r:.60}", location=here())
    program = metrics if isinstance(metrics, Program) else values[0].block.program
    states = {op.writes[0] for op in _counting_ops(program)} if isinstance(metrics, Program) else set(counted_by(program, values))
    if values and not states:
        raise ArgumentError(
            f'"{values[0].name}" is not a metric, so it cannot be reset', location=here(), given=[values[0].describe()],
            hint="pass a value of ol.metric",
        )  # fmt: skip
    init(program, scope, overwrite=True, only=states)

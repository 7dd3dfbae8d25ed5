"""The state of a metric: variables of the program that add up what batches have, and how they begin anew."""

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

__all__ = ["State", "counted_by", "may_be_alike", "measuring", "ratio", "reset"]


class State:
    """The variables of one metric: `<name>.<part>`, zeros at first, and at the end of a run what was there and what the batch adds."""

    def __init__(self, kind: str, name: str | None, given: Sequence[Var]):
        main = block_for(given, f"metric.{kind}")
        if main is not main.program.main:
            raise ProgramError(
                f"metric.{kind}: what it counts cannot be kept from {main.path}",
                location=here(),
                contract="a step writes persistable variables of the main block only, after every other op",
                given=[given[0].describe()],
                hint="return from the block what is to be measured, and measure it behind",
            )
        self.main = main
        self.name = layer_name(main.program, name, kind)
        taken = [var for var in main.vars.values() if var.persistable and var.name.startswith(f"{self.name}.")]
        if taken:
            raise ProgramError(
                f'metric.{kind}: "{taken[0].name}" is declared already, and what a metric counts is its own',
                location=here(),
                given=[taken[0].describe()],
                hint="another name",
            )

    def add(self, part: str, amount: Var) -> Var:
        """The sum of `<name>.<part>` and `amount`, whose shape has numbers alone: of its shape and dtype."""
        sizes = tuple(size for size in amount.shape or () if isinstance(size, int))
        assert sizes == amount.shape, amount.describe()
        before = new_state(self.main, f"{self.name}.{part}", sizes, amount.dtype, constant(0.0))
        after = add(before, amount)
        self.main.rename(after, next_name(before.name))
        self.main.commit(before, after, role=Role.MEASURE)
        return after

    def out(self, value: Var) -> Var:
        """`value` under the name of the metric."""
        self.main.rename(value, output_name(self.main.program, self.name))
        return value


def may_be_alike(left: Shape | None, right: Shape | None) -> bool:
    """Whether two shapes may turn out to be one."""
    return left is None or right is None or (len(left) == len(right) and all(map(may_be, left, right)))


@contextmanager
def measuring(kind: str, name: str | None, *given: Var) -> Iterator[State]:
    """The state of a metric of `given`, while its ops are written; taken back where that fails."""
    with undone_on_error(given[0].block.program):
        yield State(kind, name, given)


def ratio(part: Var, whole: Var) -> Var:
    """``part / whole``, and 0 where ``whole`` is 0."""
    none = equal(whole, constant_like(0.0, whole))
    return where(none, constant_like(0.0, whole), divide(part, where(none, constant_like(1.0, whole), whole)))


def _counting_ops(program: Program) -> list[Op]:
    """The commits of what metrics count."""
    return [op for op in program.main.tail if op.role is Role.MEASURE]


def counted_by(program: Program, values: Iterable[Var]) -> list[Var]:
    """The state behind `values`, in the order of its declaration."""
    needed = set(needed_ops(program.main.ops, values))
    return [op.writes[0] for op in _counting_ops(program) if op.reads[0].op in needed]


def reset(metrics: Program | Var | Sequence[Var], scope: Scope) -> None:
    """Let metrics begin anew in `scope`: all of a program, or those that one value, or each of several, is computed of.

    Their state has its first values again. Raises ArgumentError where there are no metrics in what is given, and what `ol.init` raises.
    """
    values = [] if isinstance(metrics, Program) else [metrics] if isinstance(metrics, Var) else list(metrics)
    if not all(isinstance(value, Var) for value in values) or (not values and not isinstance(metrics, Program)):
        raise ArgumentError(f"reset takes a program, or values of metrics, not {metrics!r:.60}", location=here())
    program = metrics if isinstance(metrics, Program) else values[0].block.program
    states = {op.writes[0] for op in _counting_ops(program)} if isinstance(metrics, Program) else set(counted_by(program, values))
    if values and not states:
        raise ArgumentError(
            f'"{values[0].name}" counts nothing, so it cannot begin anew', location=here(), given=[values[0].describe()],
            hint="ol.metric has values that add up over batches",
        )  # fmt: skip
    init(program, scope, overwrite=True, only=states)

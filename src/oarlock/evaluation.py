"""`ol.eval`: look at a value, in the scope that is current."""

from collections.abc import Mapping, Sequence

import numpy

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.walk import needed_ops
from oarlock.runtime.context import Context
from oarlock.runtime.current import current_scope
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.paths import find_path

__all__ = ["evaluate"]

_executor = Executor()


def evaluate(
    targets: Var | Sequence[Var], feed: Mapping[str, object] | None = None, *, context: Context | None = None
) -> numpy.ndarray | list[numpy.ndarray]:
    """The value of a variable, or of several, as arrays. What they need is run, and nothing else.

    Of the parameters that they need, those without a value are initialised in the scope: the current one, or that of
    `context`. Raises what `Executor.eval` raises.
    """
    chosen = [targets] if isinstance(targets, Var) else list(targets)
    if not chosen or not all(isinstance(item, Var) for item in chosen):
        raise ArgumentError("eval takes a variable, or a list of them", location=here())
    program = chosen[0].block.program
    context = context or Context(current_scope())
    executor = _executor if context.place == _executor.place else Executor(context.place)
    scope = init(program, context.scope, only=_read_by(program, chosen))
    values = executor.eval(program, chosen, feed, scope=scope, training=context.training)
    arrays = [numpy.asarray(value) for value in values]
    return arrays[0] if isinstance(targets, Var) else arrays


def _read_by(program: Program, targets: Sequence[Var]) -> set[Var]:
    """The variables that are read where `targets` are computed, these among them."""
    owners = [path.owner for path in (find_path(program, var) for var in targets) if path.owner is not None]
    return {*targets, *(var for op in needed_ops(program.main.ops, [*targets, *owners]) for var in op.reads)}

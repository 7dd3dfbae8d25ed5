"""`ol.eval`: look at a value, in the scope that is current."""

from collections.abc import Mapping, Sequence

import numpy

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.runtime.context import Context
from oarlock.runtime.current import current_scope
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init

__all__ = ["evaluate"]

_executor = Executor()


def evaluate(
    targets: Var | Sequence[Var], feed: Mapping[str, object] | None = None, *, context: Context | None = None
) -> numpy.ndarray | list[numpy.ndarray]:
    """The value of a variable, or of several, as arrays. What they need is run, and nothing else.

    Parameters that have no value yet are initialised in the scope: the current one, or that of `context`. Raises what
    `Executor.eval` raises.
    """
    chosen = [targets] if isinstance(targets, Var) else list(targets)
    if not chosen or not all(isinstance(item, Var) for item in chosen):
        raise ArgumentError("eval takes a variable, or a list of them", location=here())
    program = chosen[0].block.program
    context = context or Context(current_scope())
    executor = _executor if context.place == _executor.place else Executor(context.place)
    scope = init(program, context.scope)
    values = executor.eval(program, chosen, feed, scope=scope, training=context.training)
    arrays = [numpy.asarray(value) for value in values]
    return arrays[0] if isinstance(targets, Var) else arrays
